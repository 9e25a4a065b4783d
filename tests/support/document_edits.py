"""Single random edits of JSON documents, of a number, a type, a key or an element, with the way to what changed."""

import copy

from fuzzed_files import element, places_of

from verifier.base import checksums

HUGE = (1e19, -5, 1e308, float("nan"), float("inf"), 10**30, -1, 2, 1.5)
OTHER = (None, True, False, "x", "", [], {}, [1], "0.5", 0, 1)


def summed(content):
    """A document whose checksums are those of what it says, as whoever hides an edit would write it."""
    if content.get("schema") not in checksums.SUMMED:
        return content
    return {**content, checksums.KEY: checksums.checksums(content)}


def edited(content, rng):
    """A copy with one edit: what was done, the way to where, and the copy; None where nothing changed."""
    content = copy.deepcopy(content)
    ways = list(places_of(content))
    patterns = sorted({pattern(way) for way in ways})
    chosen = rng.choice(patterns)  # long lists do not drown the rest
    way = rng.choice([each for each in ways if pattern(each) == chosen])
    *above, key = way
    holder, value = element(content, above), element(content, way)
    what = rng.choice(("number", "number", "number", "type", "drop", "double", "swap", "text"))
    if what == "number":
        if isinstance(value, bool):
            holder[key] = not value
        elif isinstance(value, int | float):
            near = (value * 1.5, value + 1, value / 2, -value, value + 0.01, value - 0.01, 1 - value)
            holder[key] = rng.choice((*near, *near, *HUGE))
            if isinstance(value, int) and isinstance(holder[key], float) and rng.random() < 0.5:
                holder[key] = int(holder[key]) if abs(holder[key]) < 1e300 else 7
        else:
            return None
    elif what == "type":
        holder[key] = rng.choice(OTHER)
    elif what == "drop":
        del holder[key]
    elif what == "double" and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(value))
    elif what == "double":
        holder[f"{key}_"] = copy.deepcopy(value)
    elif what == "swap":
        other = rng.choice([each for each in ways if pattern(each) == chosen])
        far = element(content, other[:-1])
        holder[key], far[other[-1]] = far[other[-1]], value
    elif isinstance(value, str):
        holder[key] = rng.choice((value + "x", "x", value[1:], "satisfied", "violated", "1/3", "0.9"))
    else:
        return None
    return what, way, content


def pattern(way):
    """A way without its numbers of elements: /requirements/*/points/*/lower."""
    return "/" + "/".join("*" if isinstance(key, int) else key for key in way)
