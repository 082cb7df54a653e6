"""Finds places in Rust code that can be mutated, and the mutated code: operators of comparisons and logic, conditions,
guards, bounds, checks with `?`, and results of functions.

It reads tokens, not types, so some mutants do not compile; the runner leaves those out. It expects code that rustfmt wrote.
"""

import re
from dataclasses import dataclass

TOKEN = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<text>\b[bc]?r(?P<marks>\#*)".*?"(?P=marks)|[bc]?"(?:\\.|[^"\\])*"|b?'(?:\\[^\n]*?|[^\\'\n])')
  | (?P<life>'\w+)
  | (?P<word>\w+)
  | (?P<sign><<=|>>=|\.\.=|\.\.\.|::|->|=>|==|!=|<=|>=|&&|\|\||\+=|-=|\*=|/=|%=|&=|\|=|\^=|\.\.|.)
    """,
    re.VERBOSE | re.DOTALL,
)
CLOSING = {"(": ")", "[": "]", "{": "}"}
COMPARISONS = {"==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">"}
LOGIC = {"&&": "||", "||": "&&"}
# Tokens before and after which the operand of a comparison cannot extend.
ENDS = {",", ";", "=", "=>", "..", "..=", "+=", "-=", "&&", "||"}
STARTS = {"return", "if", "while", "match", "in", "else", "break", "let", "move", "|"}


@dataclass
class Token:
    text: str
    start: int
    end: int
    kind: str
    # The place of the bracket that closes this one, or opens it.
    partner: int = -1


@dataclass(frozen=True)
class Site:
    """A mutant: the code between two places, and the code that decides by `SWITCH` between it and its mutant."""

    start: int
    end: int
    kind: str
    switched: str
    function: str
    find: str
    replace: str


def tokens_of(text):
    tokens, opened = [], []
    for match in TOKEN.finditer(text):
        if match.lastgroup == "space":
            continue
        kind = "text" if match["text"] else "life" if match["life"] else "word" if match["word"] else "sign"
        token = Token(match[0], match.start(), match.end(), kind)
        if kind == "sign" and token.text in CLOSING:
            opened.append(len(tokens))
        elif kind == "sign" and token.text in CLOSING.values() and opened:
            token.partner = opened.pop()
            tokens[token.partner].partner = len(tokens)
        tokens.append(token)
    return tokens


class Finder:
    def __init__(self, text):
        self.text = text
        self.tokens = tokens_of(text)
        self.sites = []
        self.function = ""

    def find(self):
        self.items(0, len(self.tokens))
        return self.sites

    def is_sign(self, at, text):
        return 0 <= at < len(self.tokens) and self.tokens[at].kind != "text" and self.tokens[at].text == text

    def code(self, begin, end):
        """The code of the tokens from one place up to another one."""
        return self.text[self.tokens[begin].start : self.tokens[end - 1].end] if begin < end else ""

    def add(self, begin, end, kind, mutant, switched=None):
        original = self.code(begin, end)
        if switched is None:
            switched = f"(if SWITCH {{ {mutant} }} else {{ {original} }})"
        start, stop = self.tokens[begin].start, self.tokens[end - 1].end
        self.sites.append(Site(start, stop, kind, switched, self.function, original, mutant))

    def items(self, at, end):
        """Walks over code outside functions, and over each function."""
        while at < end:
            token = self.tokens[at]
            if token.text == "#" and (self.is_sign(at + 1, "[") or self.is_sign(at + 2, "[")):
                open_at = at + 1 if self.is_sign(at + 1, "[") else at + 2
                is_test = self.code(open_at, self.tokens[open_at].partner + 1) == "[cfg(test)]"
                at = self.tokens[open_at].partner + 1
                if is_test:
                    at = self.item_end(at, end)
            elif token.kind == "word" and token.text in ("const", "static") and not self.is_sign(at + 1, "fn"):
                at = self.item_end(at, end)
            elif token.text == "fn" and token.kind == "word" and at + 1 < end and self.tokens[at + 1].kind == "word":
                at = self.fn(at, end)
            elif self.is_sign(at + 1, "!") and token.kind == "word" and self.tokens[at + 2].partner > at:
                at = self.tokens[at + 2].partner + 1
            elif token.text == "macro_rules":
                at = self.item_end(at, end)
            else:
                at += 1

    def item_end(self, at, end):
        while at < end:
            token = self.tokens[at]
            if token.kind == "sign" and token.text in CLOSING:
                at = token.partner
                if token.text == "{":
                    return at + 1
            elif token.kind == "sign" and token.text in (";", ","):
                return at + 1
            at += 1
        return end

    def fn(self, at, end):
        """Finds the sites of a function; returns the place behind it."""
        is_const = any(self.is_sign(before, "const") for before in range(max(0, at - 2), at))
        name, result, arrow = self.tokens[at + 1].text, "", None
        while at < end:
            token = self.tokens[at]
            if token.kind == "sign" and token.text == ";":
                return at + 1
            if token.kind == "sign" and token.text == "->":
                arrow = at + 1
            if token.text == "where" and arrow and not result:
                result = self.code(arrow, at)
            if token.kind == "sign" and token.text == "{":
                break
            at = token.partner + 1 if token.kind == "sign" and token.text in CLOSING else at + 1
        if at >= end:
            return end
        close = self.tokens[at].partner
        if arrow and not result:
            result = self.code(arrow, at)
        if is_const:
            return close + 1
        outer, self.function = self.function, name
        if close > at + 1:
            self.results(at, result)
            self.body(at + 1, close)
        self.function = outer
        return close + 1

    def results(self, open_at, result):
        values = []
        if result == "bool":
            values = ["true", "false"]
        elif result.startswith("Option<"):
            values = ["None"]
        elif re.match(r"(io::)?Result<\(\)[,>]", result):
            values = ["Ok(())"]
        elif result in ("usize", "u64", "u32"):
            values = ["0"]
        for value in values:
            self.add(open_at, open_at + 1, f"returns {value}", value, f"{{ if SWITCH {{ return {value}; }}")

    def body(self, at, end):
        first = at
        while at < end:
            token = self.tokens[at]
            text = token.text if token.kind != "text" else ""
            if text == "#" and self.is_sign(at + 1, "["):
                is_test = self.code(at + 1, self.tokens[at + 1].partner + 1) == "[cfg(test)]"
                at = self.tokens[at + 1].partner + 1
                at = self.item_end(at, end) if is_test else at
                continue
            if text in ("const", "static") and token.kind == "word":
                at = self.item_end(at, end)
                continue
            if text == "fn" and self.tokens[at + 1].kind == "word":
                at = self.fn(at, end)
                continue
            if token.kind == "word" and self.is_sign(at + 1, "!") and self.tokens[at + 2].partner > at:
                at = self.tokens[at + 2].partner + 1
                continue
            if text in COMPARISONS and self.has_spaces(at):
                self.comparison(at, first, end)
            elif text in LOGIC and self.is_binary(at):
                self.logic(at, first, end)
            elif text == "if" and token.kind == "word":
                self.condition(at, end)
            elif text == "?" and self.is_sign(at + 1, ";"):
                self.check(at, first)
            elif text in ("min", "max") and self.is_sign(at - 1, ".") and self.is_sign(at + 1, "("):
                if self.tokens[at + 1].partner > at + 2:
                    other = "max" if text == "min" else "min"
                    self.bound(at, other, first)
            elif text in ("+=", "-="):
                self.assignment(at, first, end)
            if token.kind == "sign" and text in CLOSING:
                self.body(at + 1, token.partner)
                at = token.partner
            at += 1

    def has_spaces(self, at):
        token = self.tokens[at]
        return self.text[token.start - 1].isspace() and self.text[token.end].isspace()

    def is_binary(self, at):
        before = self.tokens[at - 1]
        ends_operand = before.kind in ("word", "text") or before.text in (")", "]", "}", "?")
        return self.has_spaces(at) and ends_operand and before.text not in STARTS

    def left(self, at, first, ends):
        """The first token of the operand before a place."""
        begin = at
        while begin > first:
            before = self.tokens[begin - 1]
            if before.kind != "text" and (before.text in ends or before.text in STARTS or before.text in CLOSING):
                break
            if before.kind == "sign" and before.text in CLOSING.values():
                # A block before an operand is a statement, unless the operand goes on behind it.
                if before.text == "}" and not self.is_sign(begin, "."):
                    break
                begin = before.partner
            else:
                begin -= 1
        return begin

    def right(self, at, end, ends):
        while at < end:
            token = self.tokens[at]
            if token.kind != "text" and (token.text in ends or token.text in (";", "else")):
                break
            if token.kind == "sign" and token.text == "{":
                break
            at = token.partner + 1 if token.kind == "sign" and token.text in CLOSING else at + 1
        return at

    def comparison(self, at, first, end):
        begin, stop = self.left(at, first, ENDS), self.right(at + 1, end, ENDS)
        if begin < at < stop - 1:
            operator = self.tokens[at]
            other = COMPARISONS[operator.text]
            self.replaced(begin, stop, operator, other)

    def replaced(self, begin, stop, operator, other):
        start, end = self.tokens[begin].start, self.tokens[stop - 1].end
        mutant = self.text[start : operator.start] + other + self.text[operator.end : end]
        self.add(begin, stop, f"{operator.text} to {other}", mutant)

    def logic(self, at, first, end):
        ends = ENDS - {"&&", "||"}
        begin, stop = self.left(at, first, ends), self.right(at + 1, end, ends)
        is_let = self.is_sign(begin - 1, "let") or any(self.is_sign(place, "let") for place in range(begin, stop))
        if begin < at < stop - 1 and not is_let and not self.is_in_chain(begin, first):
            operator = self.tokens[at]
            self.replaced(begin, stop, operator, LOGIC[operator.text])

    def is_in_chain(self, begin, first):
        """Whether `let` is before this operand in the same condition."""
        at = begin
        while at > first and not (self.tokens[at].text in (";", "{", "}", "if", "while") and at < begin):
            at -= 1
            if self.is_sign(at, "let"):
                return self.is_sign(at - 1, "if") or self.is_sign(at - 1, "while") or self.is_sign(at - 1, "&&")
        return False

    def condition(self, at, end):
        stop = at + 1
        while stop < end:
            token = self.tokens[stop]
            if token.kind == "sign" and token.text in ("{", "=>"):
                break
            stop = token.partner + 1 if token.kind == "sign" and token.text in CLOSING else stop + 1
        has_let = any(self.is_sign(place, "let") for place in range(at + 1, stop))
        if stop < end and stop > at + 1 and not has_let:
            code = self.code(at + 1, stop)
            kind = "guard" if self.is_sign(stop, "=>") else "condition"
            self.add(at + 1, stop, f"{kind} negated", f"!({code})", f"SWITCH != ({code})")

    def statement(self, at, first):
        begin = at
        while begin > first:
            before = self.tokens[begin - 1]
            if before.kind == "sign" and before.text in (";", "{", "=>", ","):
                break
            if before.kind == "sign" and before.text in CLOSING.values():
                if before.text == "}" and not self.is_sign(begin, "."):
                    break
                begin = before.partner
            else:
                begin -= 1
        return begin

    def check(self, at, first):
        begin = self.statement(at, first)
        words = {self.tokens[place].text for place in range(begin, at) if self.tokens[place].kind != "text"}
        if begin < at and not words & {"let", "=", "return", "break", "+=", "else"}:
            code = self.code(begin, at)
            self.add(begin, at + 1, "check left out", f"drop({code})", f"if SWITCH {{ drop({code}) }} else {{ {code}? }}")

    def bound(self, at, other, first):
        begin, stop = self.left(at, first, ENDS), self.tokens[at + 1].partner + 1
        word = self.tokens[at]
        start, end = self.tokens[begin].start, self.tokens[stop - 1].end
        mutant = self.text[start : word.start] + other + self.text[word.end : end]
        if begin < at:
            self.add(begin, stop, f"{word.text} to {other}", mutant)

    def assignment(self, at, first, end):
        begin = self.statement(at, first)
        stop = at
        while stop < end and not self.is_sign(stop, ";"):
            stop = self.tokens[stop].partner + 1 if self.tokens[stop].text in CLOSING else stop + 1
        if begin < at < stop < end:
            operator = self.tokens[at]
            self.replaced(begin, stop, operator, "-=" if operator.text == "+=" else "+=")


def sites_of(text):
    return Finder(text).find()
