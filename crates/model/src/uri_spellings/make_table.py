"""Writes `table.json`: spellings of URIs, and what Node's `URL`, Python's `urllib` and Java's `URI` read.

    python3 make_table.py

Needs `node` and `java`. A reading is scheme, host and decoded path; user information, port and query are left out. `same`
names the programs of which one reading of the spelling is a reading of the excluded URI as well."""

import json
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
DOCS = "docs://files/salaries"
HTTP = "http://inner.example/admin/keys"
LOOP = "http://127.0.0.1/admin"
FILE = "file:///srv/secret.txt"
IDN = "https://bücher.example/straße"
NAME = "https://straße.example/a"
NFC = "docs://files/café"
SIX = "http://[2001:db8::1]/admin"
DEEP = "docs://files/a/b"

# The excluded URI, a spelling, and in which way it differs.
SPELLINGS = [
    (DOCS, DOCS, "as it is written"),
    (DOCS, "docs://anna@files/salaries", "user"),
    (DOCS, "docs://anna:word@files/salaries", "user and password"),
    (DOCS, "docs://@files/salaries", "empty user"),
    (DOCS, "docs://an%40na@files/salaries", "`@` in the user, encoded"),
    (DOCS, "docs://anna@other@files/salaries", "two `@`"),
    (DOCS, "docs://files:80/salaries", "port"),
    (DOCS, "docs://files:/salaries", "empty port"),
    (DOCS, "docs://files:00080/salaries", "port with zeros"),
    (DOCS, "docs://anna@files:443/%73alaries", "user, port and an encoded letter"),
    (DOCS, "docs://files./salaries", "dot behind the host"),
    (DOCS, "docs://f%69les/salaries", "encoded letter of the host"),
    (DOCS, "docs://fi%6C%65s/salaries", "encoded letters of the host"),
    (DOCS, "docs://FILES/salaries", "host in capitals"),
    (DOCS, "DOCS://files/salaries", "scheme in capitals"),
    (DOCS, "docs://files/salar\ties", "tab inside"),
    (DOCS, "docs://fi\nles/salaries", "newline inside the host"),
    (DOCS, "docs://files/sala\rries", "carriage return inside"),
    (DOCS, "do\tcs://files/salaries", "tab inside the scheme"),
    (DOCS, " docs://files/salaries", "space in front"),
    (DOCS, "\u0001docs://files/salaries", "control character in front"),
    (DOCS, "docs://files/salaries;v=1", "parameter"),
    (DOCS, "docs://files/salaries;", "empty parameter"),
    (DOCS, "docs://files;x/salaries", "parameter of the host"),
    (DOCS, "docs://files/%73alaries;jsessionid=1?q#f", "parameter, query and encoded letter"),
    (DOCS, "docs://files/salaries?", "empty query"),
    (DOCS, "docs://files/salaries#", "empty fragment"),
    (DOCS, "docs://files/./salaries", "dot segment"),
    (DOCS, "docs://files/x/../salaries", "two dots"),
    (DOCS, "docs://files/x/%2e%2e/salaries", "two encoded dots"),
    (DOCS, "docs://files/x/..;/salaries", "`..;/`"),
    (DOCS, "docs://files/x/..;a=b/salaries", "`..;a=b/`"),
    (DOCS, "docs://files/.;/salaries", "`.;/`"),
    (DOCS, "docs://files\\salaries", "backslash"),
    (DOCS, "docs://ｆiles/salaries", "full-width letter of the host"),
    (DOCS, "docs://fi\u00adles/salaries", "soft hyphen in the host"),
    (DOCS, "docs://fi\u200bles/salaries", "zero width space in the host"),
    (DOCS, "docs://files%00/salaries", "NUL behind the host"),
    (DEEP, "docs://files/a%2Fb", "encoded slash"),
    (DEEP, "docs://files/a;x/b;y", "parameters of two segments"),
    (DEEP, "docs://files/x/..;/a/./b", "`..;/` and a dot segment"),
    (HTTP, HTTP, "as it is written"),
    (HTTP, "HTTP://INNER.EXAMPLE/admin/keys", "capitals"),
    (HTTP, "http://inner.example:80/admin/keys", "default port"),
    (HTTP, "http://inner.example:0080/admin/keys", "default port with a zero"),
    (HTTP, "http://inner.example./admin/keys", "dot behind the host"),
    (HTTP, "http://x:y@inner.example/admin/keys", "user and password"),
    (HTTP, "http:inner.example/admin/keys", "no slash"),
    (HTTP, "http:/inner.example/admin/keys", "one slash"),
    (HTTP, "http:///inner.example/admin/keys", "three slashes"),
    (HTTP, "http:\\\\inner.example\\admin\\keys", "backslashes"),
    (HTTP, "http://inner.example\\admin/keys", "backslash behind the host"),
    (HTTP, "http://x@other.example:y@inner.example/admin/keys", "two `@`"),
    (HTTP, "http://inner。example/admin/keys", "ideographic full stop"),
    (HTTP, "http://inner．example/admin/keys", "full-width dot"),
    (HTTP, "http://inner｡example/admin/keys", "half-width dot"),
    (HTTP, "http://in\u00adner.example/admin/keys", "soft hyphen"),
    (HTTP, "http://ⓘnner.example/admin/keys", "letter in a circle"),
    (HTTP, "http://𝐢nner.example/admin/keys", "mathematical letter"),
    (HTTP, "http://inner%2Eexample/admin/keys", "encoded dot"),
    (HTTP, "http://inner%E3%80%82example/admin/keys", "encoded ideographic full stop"),
    (HTTP, "http://inner.example/admin/..;/admin/keys", "`..;/`"),
    (HTTP, "http://inner.example/admin/k\teys", "tab inside"),
    (HTTP, "http://inner.example/%61dmin/keys", "encoded letter"),
    (HTTP, "http://inner.ex\nample/admin/keys", "newline inside the host"),
    (LOOP, "http://127.1/admin", "two numbers"),
    (LOOP, "http://127.0.1/admin", "three numbers"),
    (LOOP, "http://2130706433/admin", "one number"),
    (LOOP, "http://0x7f000001/admin", "hexadecimal"),
    (LOOP, "http://0x7f.0.0.0x1/admin", "hexadecimal numbers"),
    (LOOP, "http://0177.0.0.1/admin", "octal"),
    (LOOP, "http://017700000001/admin", "one octal number"),
    (LOOP, "http://127.0.0.1./admin", "dot behind the address"),
    (LOOP, "http://[::ffff:127.0.0.1]/admin", "mapped address"),
    (LOOP, "http://[::ffff:7f00:1]/admin", "mapped address in hexadecimal"),
    (LOOP, "http://[0:0:0:0:0:ffff:7f00:0001]/admin", "mapped address in full"),
    (LOOP, "http://１２７.0.0.1/admin", "full-width digits"),
    (LOOP, "http://127%2e0.0.1/admin", "encoded dot"),
    ("http://177.0.0.1/admin", "http://0177.0.0.1/admin", "a zero in front"),
    (SIX, "http://[2001:DB8:0:0:0:0:0:1]/admin", "zeros written out"),
    (SIX, "http://[2001:0db8::0001]:80/admin", "zeros and port"),
    (SIX, "http://[2001:db8::0.0.0.1]/admin", "IPv4 at the end"),
    (FILE, "file://localhost/srv/secret.txt", "`localhost`"),
    (FILE, "file://LOCALHOST/srv/secret.txt", "`localhost` in capitals"),
    (FILE, "file://127.0.0.1/srv/secret.txt", "`127.0.0.1`"),
    (FILE, "file:/srv/secret.txt", "one slash"),
    (FILE, "file:srv/secret.txt", "no slash"),
    (FILE, "file:\\\\\\srv\\secret.txt", "backslashes"),
    (FILE, "file:////srv/secret.txt", "four slashes"),
    (FILE, "file:///srv/x/..;/secret.txt", "`..;/`"),
    (FILE, "file:///srv/x/../secret.txt", "two dots"),
    (FILE, "file:///srv/secret%2Etxt", "encoded dot"),
    (FILE, "file:///srv/sec\nret.txt", "newline inside"),
    (IDN, "https://xn--bcher-kva.example/straße", "punycode"),
    (IDN, "https://XN--BCHER-KVA.example/straße", "punycode in capitals"),
    (IDN, "https://bu\u0308cher.example/straße", "host in the form NFD"),
    (IDN, "https://b%C3%BCcher.example/straße", "encoded letter of the host"),
    (IDN, "https://BÜCHER.example/stra%C3%9Fe", "capitals and an encoded letter"),
    (IDN, "https://xn--bcher-kva.example.:443/straße", "punycode, dot and port"),
    (NAME, "https://strasse.example/a", "IDNA of 2003"),
    (NAME, "https://xn--strae-oqa.example/a", "punycode of IDNA 2008"),
    (NFC, "docs://files/cafe\u0301", "NFD"),
    (NFC, "docs://files/caf%C3%A9", "encoded NFC"),
    (NFC, "docs://files/cafe%CC%81", "encoded NFD"),
    # URIs that are not the excluded one: the word `another` says so to the test.
    (DOCS, "docs://files/salaries2", "another name"),
    (DOCS, "docs://files2/salaries", "another host"),
    (DOCS, "docs://files/plan;salaries", "another name with a parameter"),
    (DOCS, "docs://salaries@other/salaries", "another host with a user"),
    (HTTP, "http://outer.example/admin/keys", "another host"),
    (HTTP, "http://inner.example.org/admin/keys", "another, longer host"),
    (HTTP, "https://inner.example/admin/keys", "another scheme"),
    (LOOP, "http://127.0.0.2/admin", "another address"),
    (SIX, "http://[2001:db8::2]/admin", "another address"),
    (FILE, "file:///srv/secret", "another file"),
    (IDN, "https://bucher.example/straße", "another letter"),
    (NFC, "docs://files/cafe", "another letter"),
]


def run(command, lines):
    given = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(command, input=given, capture_output=True, text=True, cwd=FOLDER, encoding="utf-8")
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed: {done.stderr}")
    answers = done.stdout.splitlines()
    assert len(answers) == len(lines), command
    return answers


def units(text):
    return text.encode("utf-16-be", "surrogatepass").hex()


def text_of(line):
    return bytes.fromhex(line).decode("utf-16-be", "surrogatepass")


def main():
    uris = sorted({uri for row in SPELLINGS for uri in row[:2]})
    lines = [json.dumps(uri) for uri in uris]
    node = map(json.loads, run(["node", "read.mjs"], lines))
    python = map(json.loads, run([sys.executable, "read.py"], lines))
    java = ([text_of(it) for it in line.split()] for line in run(["java", "Read.java"], [units(uri) for uri in uris]))
    programs = {name: dict(zip(uris, read)) for name, read in [("node", node), ("python", python), ("java", java)]}
    rows = []
    for excluded, spelling, differs in SPELLINGS:
        read = {name: sorted(set(of[spelling])) for name, of in programs.items()}
        same = [name for name, of in programs.items() if set(of[spelling]) & set(of[excluded])]
        rows.append({"excluded": excluded, "spelling": spelling, "differs": differs, **read, "same": same})
    rows = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    (FOLDER / "table.json").write_text(f"[\n{rows}\n]\n", encoding="ascii")


main()
