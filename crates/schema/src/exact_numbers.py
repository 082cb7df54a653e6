"""Prints schemas, values and their verdicts, computed with exact fractions: one case a line, as JSON."""

import random
import sys
from fractions import Fraction

random.seed(int(sys.argv[2]))


def fraction(text):
    mantissa, _, exponent = text.lower().partition("e")
    return Fraction(mantissa) * Fraction(10) ** int(exponent or "0")


def digits(count):
    return str(random.randint(10 ** (count - 1), 10**count - 1))


def number():
    sign = random.choice(["", "", "-"])
    kind = random.randrange(9)
    if kind == 0:
        return sign + str(random.randrange(20))
    if kind == 1:
        return sign + digits(random.choice([3, 15, 17, 19, 20, 21, 40, 400]))
    if kind == 2:
        return sign + str(random.choice([2**53, 2**63, 2**64, 10**19]) + random.randrange(-2, 3))
    if kind == 3:
        return sign + repr(random.choice([0.1, 0.3, 1.5, 2.5e-7, 1e23, 9.5e15, 1.2345678901234567e300]))
    if kind == 4:
        return f"{sign}{random.randrange(10)}.{digits(random.choice([1, 2, 17, 20, 60]))}"
    if kind == 5:
        return f"{sign}{random.randrange(1, 10)}e{random.choice([-10000, -400, -324, -5, 3, 22, 308, 309, 400, 9999, 10000])}"
    if kind == 6:
        return f"{sign}{digits(random.choice([2, 18, 50]))}E{random.choice(['+', '-', ''])}{random.randrange(60)}"
    if kind == 7:
        return f"{sign}{float(2 ** random.randrange(50, 66)) + random.randrange(5000)!r}"
    return random.choice(["0", "-0", "0.0", "0e5", "-0.0e-300"])


def respelled(text):
    """The same value in another form, or a value beside it."""
    kind = random.randrange(6)
    mantissa, _, exponent = text.lower().partition("e")
    exponent = int(exponent or "0")
    if kind == 0 and abs(exponent) < 9000:
        whole, _, rest = mantissa.partition(".")
        return f"{whole}{'.' + rest if rest else ''}{'0' * 3 if rest else '.000'}e{exponent}"
    if kind == 1 and abs(exponent) < 9000 and fraction(text) != 0:
        return f"{int(mantissa)}0e{exponent - 1}" if "." not in mantissa else f"{mantissa}0e{exponent}"
    if kind == 2:
        return f"{mantissa}{'' if '.' in mantissa else '.'}{'0' * random.choice([1, 20])}1e{exponent}"
    if kind == 3:
        return text
    if kind == 4 and "." not in mantissa:
        return f"{int(mantissa) + random.choice([-1, 1])}e{exponent}"
    return number()


def step():
    text = random.choice(["1", "3", "7", "0.1", "0.01", "1e-10000", "1e10000", "2.5e-7", "64", "1.5", "0", "0", "0"])
    if text == "0":
        text = number().lstrip("-")
    return text if fraction(text) > 0 else "3"


def value(depth):
    """A JSON text and a value to compare by."""
    kind = random.randrange(7 if depth else 5)
    if kind == 5:
        items = [value(depth - 1) for _ in range(random.randrange(4))]
        return "[" + ",".join(text for text, _ in items) + "]", ("list", *[key for _, key in items])
    if kind == 6:
        members = [(name, value(depth - 1)) for name in random.sample("abc", random.randrange(3))]
        text = "{" + ",".join(f'"{name}":{text}' for name, (text, _) in members) + "}"
        return text, ("object", *sorted((name, key) for name, (_, key) in members))
    if kind == 4:
        text = random.choice(['"1e400"', '"\\ufdd01e400"', '"\\ufdd0\\ufdd05"', "null", "true", '""'])
        return text, ("other", text)
    text = number()
    return text, ("number", fraction(text))


def case():
    keyword = random.choice(
        ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "multipleOf"]
        + ["type", "const", "enum", "uniqueItems"]
    )
    text = number()
    exact = fraction(text)
    if keyword == "type":
        return '{"type":"integer"}', text, exact.denominator == 1
    if keyword == "multipleOf":
        by = step()
        if random.random() < 0.5:
            whole = fraction(by) * random.randrange(-1000, 1000)
            mantissa, _, exponent = by.lower().partition("e")
            shift = len(mantissa.partition(".")[2])
            exponent = int(exponent or "0") - shift
            if abs(exponent) <= 10000:
                text = f"{int(whole / Fraction(10) ** exponent)}e{exponent}"
                exact = fraction(text)
        return f'{{"multipleOf":{by}}}', text, (exact / fraction(by)).denominator == 1
    if keyword in ("const", "enum"):
        text, key = value(2)
        others = [value(2) for _ in range(random.randrange(1, 4))]
        others += [(text, key)] if random.random() < 0.4 else []
        if key[0] == "number":
            other = respelled(text)
            others.append((other, ("number", fraction(other))))
        random.shuffle(others)
        if keyword == "const":
            return f'{{"const":{others[0][0]}}}', text, others[0][1] == key
        return f'{{"enum":[{",".join(one for one, _ in others)}]}}', text, any(one == key for _, one in others)
    if keyword == "uniqueItems":
        items = [value(1) for _ in range(random.randrange(1, 6))]
        text, key = random.choice(items)
        if key[0] == "number":
            other = respelled(text)
            items.append((other, ("number", fraction(other))))
        keys = [key for _, key in items]
        unique = all(one not in keys[:at] for at, one in enumerate(keys))
        return '{"uniqueItems":true}', f'[{",".join(text for text, _ in items)}]', unique
    limit = respelled(text)
    bound = fraction(limit)
    verdicts = {
        "minimum": exact >= bound,
        "maximum": exact <= bound,
        "exclusiveMinimum": exact > bound,
        "exclusiveMaximum": exact < bound,
    }
    return f'{{"{keyword}":{limit}}}', text, verdicts[keyword]


sys.set_int_max_str_digits(0)
for _ in range(int(sys.argv[1])):
    schema, instance, verdict = case()
    print(f'{{"schema":{schema},"value":{instance},"valid":{"true" if verdict else "false"}}}')
