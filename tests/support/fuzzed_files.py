"""Random edits that know the structure of a file: JSON, TOML, tables, specs; and, now and then, of its bytes."""

import io
import json
import re

WEIRD_NUMBERS = (
    "0", "-1", "1", "0.5", "1e308", "-1e308", "1e999", "-1e999", "NaN", "Infinity", "-Infinity", "nan", "inf", "-inf",
    "1e-320", "9" * 19, "9" * 400, "9" * 5000, "-" + "9" * 5000, "0x10", "1_000", "1e5", "-0.0", "2147483648",
    "9223372036854775808", "18446744073709551616", "1e15", "1e19", "+3", "0.1e-400", "1." + "0" * 5000, "1/0", "1/3",
)  # fmt: skip
WEIRD_TEXTS = (
    "", " ", "nan", "NaN", "None", "null", "true", "\u0000", "\u202e", "é", "\ud800", "..", "/", "../etc", "a" * 300,
    "x" * 5000, "a,b", 'a"b', "a\nb", "a\tb", "{0}", "%s", "@", "=1+1", "\\", "'", "/dev/null", "empty", "é" * 200,
)  # fmt: skip
JSON_VALUES = (
    "null",
    "true",
    "false",
    "[]",
    "{}",
    "[{}]",
    "[[]]",
    "[null]",
    '{"a": 1}',
    "[1, 2]",
    '"x"',
    "[[[[1]]]]",
)
TOML_VALUES = (
    "true", "[]", "{}", '""', '"x"', "[1, 2]", "[[]]", "{ a = 1 }", "1979-05-27", "07:32:00", "inf", "nan", "0x1F",
    '"""\na"""', "'x'", "[{}]", '"x + "', '"1 / 0"', '"x % 0"', '"((((x))))"', '"\\u0000"', '"sees(ped)"', '"-x"',
)  # fmt: skip
WORDS = (
    "(", ")", "[", "]", "!", "&", "|", "->", "<->", "=", ">=", "<", "..", ",", ":", "G", "F", "X", "U", "R", "W", "M",
    "U[0,3]", "F<=5", "X[3]", "min(", "abs(", "sees(ped)", "x", "v", "ped", "true", "false", "1", "0", "1/0", "=?",
    "P", ">", "let", "set", "sweep", "planner", "environments", "initial", "model", '"', "'", "//", "%", "-", "+",
)  # fmt: skip
RAW = "\u0001raw{}\u0001"
TOKEN = re.compile(r"\w+|\s+|[^\w\s]")


def fuzzed(kind, raw, rng):
    """The bytes of a file of some kind ("json", "toml", "table", "words") with one to three random edits."""
    edit = EDITS[kind]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        try:
            raw = _bytes(raw, rng) if rng.random() < 0.06 else edit(raw, rng)
        except (ValueError, OSError, RecursionError):  # after an edit that leaves no such file
            raw = _bytes(raw, rng)
    return raw


def _bytes(raw, rng):
    at = rng.randrange(len(raw) + 1)
    return rng.choice(
        (
            raw[:at],
            raw[:at] + bytes([rng.randrange(256)]) + raw[at + 1 :],
            raw[:at]
            + rng.choice((b"\0", b"\xff", b"\xef\xbb\xbf", b"\r\n", b'"', b"\xed\xa0\x80", b"[" * 3000))
            + raw[at:],
            raw[:at] + raw[at + rng.randrange(40) :],
            b"\xef\xbb\xbf" + raw,
            raw.replace(b"\n", b"\r\n"),
            b"",
        )
    )


def places_of(value, at=()):
    """The ways to all elements of a JSON value below the top."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, element in inner:
        yield (*at, key)
        yield from places_of(element, (*at, key))


def element(value, way):
    """What a way leads to."""
    for key in way:
        value = value[key]
    return value


def _json(raw, rng):
    value = json.loads(raw)
    ways = list(places_of(value))
    literals = []

    def literal(text):
        literals.append(text)
        return RAW.format(len(literals) - 1)

    if not ways:
        return rng.choice(JSON_VALUES).encode()
    # Long lists of numbers do not drown the rest: a depth is chosen first.
    depth = rng.choice(sorted({len(way) for way in ways}))
    *above, key = rng.choice([way for way in ways if len(way) == depth])
    holder = element(value, above)
    what = rng.randrange(8)
    if what <= 2:
        holder[key] = literal(rng.choice((*WEIRD_NUMBERS[:24], *JSON_VALUES)))
    elif what == 3:
        holder[key] = rng.choice(WEIRD_TEXTS)
    elif what == 4:
        del holder[key]
    elif what == 5:
        other = element(value, rng.choice(ways))
        holder[key] = json.loads(json.dumps(other))
    elif what == 6 and isinstance(holder, dict):
        name = rng.choice((*WEIRD_TEXTS, literal(json.dumps(key)[1:-1])))
        holder[name] = holder[key]
        if rng.random() < 0.5:
            del holder[key]
    elif what == 6 and isinstance(holder, list):
        holder.insert(key, json.loads(json.dumps(holder[rng.randrange(len(holder))])))
    elif isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
        holder[key] = rng.choice(
            (-holder[key], holder[key] + 1, holder[key] * 1e19, holder[key] / 3, str(holder[key]))
        )
    else:
        holder[key] = [holder[key]]
    text = json.dumps(value, indent=rng.choice((None, 2)))
    for number, found in enumerate(literals):
        marked = json.dumps(RAW.format(number))
        text = text.replace(marked + ":", json.dumps(found)[:1] + found + '":').replace(marked, found)
    return text.encode()


def _toml(raw, rng):
    lines = raw.decode().split("\n")
    settings = [at for at, line in enumerate(lines) if re.match(r"\s*[\w\"'{ ].*=", line)]
    at = rng.choice(settings) if settings and rng.random() < 0.8 else rng.randrange(len(lines))
    what = rng.randrange(7)
    value = rng.choice((*TOML_VALUES, *WEIRD_NUMBERS, json.dumps(rng.choice(WEIRD_TEXTS))))
    if what <= 2 and "=" in lines[at]:
        found = list(re.finditer(r'=\s*("[^"]*"|\[[^\]]*\]|[\w.+-]+|\{[^}]*\})', lines[at]))
        if found:
            one = rng.choice(found)
            lines[at] = lines[at][: one.start(1)] + value + lines[at][one.end(1) :]
    elif what == 3:
        inside = list(re.finditer(r'"([^"]*)"', lines[at]))
        if inside:
            one = rng.choice(inside)
            text = _words(one.group(1).encode(), rng).decode().replace('"', "").replace("\\", "").replace("\n", " ")
            lines[at] = lines[at][: one.start(1)] + text + lines[at][one.end(1) :]
    elif what == 4:
        del lines[at]
    elif what == 5:
        lines.insert(rng.randrange(len(lines)), lines[at])
    else:
        lines[at] = re.sub(r"\w+", lambda found: rng.choice((found.group(), "x", "[a]")), lines[at], count=2)
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _table(raw, rng):
    lines = raw.decode().split("\n")
    full = [at for at, line in enumerate(lines) if line.strip()] or [0]
    at = rng.choice(full)
    separator = max(",;\t ", key=lines[full[-1]].count)
    cells = lines[at].split(separator)
    what = rng.randrange(8)
    if what <= 3:
        cells[rng.randrange(len(cells))] = rng.choice((*WEIRD_NUMBERS, *WEIRD_TEXTS))
        lines[at] = separator.join(cells)
    elif what == 4:
        del cells[rng.randrange(len(cells))]
        lines[at] = separator.join(cells)
    elif what == 5:
        cells.insert(rng.randrange(len(cells) + 1), rng.choice(cells))
        lines[at] = separator.join(cells)
    elif what == 6:
        del lines[at]
    else:
        lines.insert(rng.choice(full), lines[at])
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _words(raw, rng):
    tokens = TOKEN.findall(raw.decode()) or [""]
    at, what = rng.randrange(len(tokens)), rng.randrange(6)
    word = rng.choice((*WORDS, *WEIRD_NUMBERS, *WEIRD_TEXTS))
    if what == 0:
        tokens[at] = word
    elif what == 1:
        tokens.insert(at, f" {word} ")
    elif what == 2:
        del tokens[at]
    elif what == 3:
        other = rng.randrange(len(tokens))
        tokens[at], tokens[other] = tokens[other], tokens[at]
    elif what == 4:
        tokens.insert(at, rng.choice(tokens))
    else:
        end = min(len(tokens), at + rng.randrange(1, 8))
        tokens[at:end] = (
            rng.choice(("({})", "!({})", "[{}]", "F ({})", "X X ({})", "-({})", "({0}) U ({0})")).format(
                "".join(tokens[at:end])
            ),
        )
    return "".join(tokens).encode("utf-8", "surrogatepass")


def _parquet(raw, rng):
    import pyarrow as arrow
    from pyarrow import parquet

    table = parquet.read_table(io.BytesIO(raw))
    at, what = rng.randrange(table.num_columns), rng.randrange(5)
    name, column = table.column_names[at], table.column(at)
    rows = table.num_rows
    if what == 0:
        table = table.drop_columns([name])
    elif what == 1:
        table = table.append_column(rng.choice((name, "x", "é")), column)
    elif what == 2:
        values = column.to_pylist()
        if values:
            values[rng.randrange(len(values))] = None
        table = table.set_column(at, name, arrow.array(values, column.type))
    elif what == 3:
        kinds = (
            arrow.array([float("nan")] * rows), arrow.array([1e308] * rows), arrow.array([True] * rows),
            arrow.array(["x"] * rows), arrow.array([b"\xff"] * rows), arrow.array([[1]] * rows),
            arrow.array([None] * rows, arrow.null()), arrow.array([0] * rows, arrow.timestamp("s")),
            arrow.array([2**63] * rows, arrow.uint64()), arrow.array(["a"] * rows).dictionary_encode(),
            arrow.array([1] * rows, arrow.decimal128(5)), arrow.array([{"a": 1}] * rows), arrow.array([-1] * rows),
        )  # fmt: skip
        table = table.set_column(at, name, rng.choice(kinds))
    else:
        table = table.slice(0, rng.randrange(rows + 1))
    stream = io.BytesIO()
    parquet.write_table(table, stream)
    return stream.getvalue()


EDITS = {"json": _json, "toml": _toml, "table": _table, "words": _words, "parquet": _parquet}
