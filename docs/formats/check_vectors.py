#!/usr/bin/env python3
"""Recomputes every key of key-vectors.json with the standard library alone. See key-encoding.md."""
import base64, hashlib, json, pathlib, re, sys


def element(tag, data):
    length, prefix = len(data), bytearray()
    while length >= 0x80:
        prefix.append(length & 0x7F | 0x80)
        length >>= 7
    prefix.append(length)
    return tag + bytes(prefix) + data


def number(text):
    sign, whole, fraction, exponent = re.fullmatch(r"(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?", text, re.A).groups()
    digits = whole + (fraction or "")
    significant = digits.lstrip("0")
    point = len(whole) - (len(digits) - len(significant)) + int(exponent or 0)
    significant = significant.rstrip("0")
    if not significant:
        return "0"
    if point > 4096 or len(significant) - point > 4096:
        raise ValueError("more than 4,096 digits on a side of the point")
    if point <= 0:
        return sign + "0." + "0" * -point + significant
    if point >= len(significant):
        return sign + significant + "0" * (point - len(significant))
    return sign + significant[:point] + "." + significant[point:]


def value(typed):
    (kind, content), = typed.items()
    if kind == "text":
        return element(b"t", content.encode())
    if kind == "number":
        return element(b"n", number(content).encode())
    if kind == "bool":
        return element(b"b", b"\1" if content else b"\0")
    return element(b"x", bytes.fromhex(content))


def text(content):
    return value({"text": content})


def count(content):
    return value({"number": str(content)})


def hash16(canonical):
    return hashlib.sha256(canonical).digest()[:16]


KINDS = {
    "content-fields": "content", "content-fields-epoch": "content-epoch", "composite": "composite",
    "epoch-sequence": "sequence", "source-offset": "offset", "change-key": "change",
    "change-key-without-schema": "change-without-schema", "derived": "derived", "window-sequence": "window",
    "custom": "custom",
}


def canonical(vector):
    strategy, facts = vector["strategy"], vector["facts"]
    values = [value(typed) for typed in vector["values"]]
    version = None
    if strategy in ("change-key", "change-key-without-schema", "window-sequence"):
        version = element(b"v", b"field") + values.pop()
    elif strategy == "derived":
        values = values[-1:] + sorted(values[:-1])
    elif strategy in ("content-fields-epoch", "composite"):
        version = element(b"v", b"epoch") + text(facts["source"]) + text(facts["lane"]) + count(facts["epoch"])
    elif strategy == "epoch-sequence":
        version = (element(b"v", b"sequence") + text(facts["source"]) + text(facts["lane"])
                   + count(facts["epoch"]) + count(facts["sequence"]))
    elif strategy == "source-offset" or not vector["unique"]:
        origin = element(b"k", b"origin") + text(facts["source"]) + text(facts["lane"]) + text(facts["incarnation"])
        version = (element(b"v", b"position") + element(b"x", hash16(origin))
                   + count(facts["offset"]) + count(facts["index"]) + count(facts["emit"]))
    if strategy == "custom":
        values.insert(0, text(vector["name"]))
    kind = element(b"k", f"{KINDS[strategy]}/{vector['key']}".encode())
    return kind + b"".join(values) + (version if version and vector["key"] == "event" else b"")


def key_text(canonical_bytes):
    return "h1_" + base64.b32encode(hash16(canonical_bytes)).decode().rstrip("=").lower()


if __name__ == "__main__":
    vectors = json.loads(pathlib.Path(__file__).with_name("key-vectors.json").read_text())["vectors"]
    wrong = [v["about"] for v in vectors
             if canonical(v).hex() != v["canonical"] or key_text(canonical(v)) != v["text"]]
    print(f"{len(vectors)} vectors, {len(wrong)} wrong", *wrong, sep="\n  ")
    sys.exit(bool(wrong))
