"""The rules that gsn2x documents for its YAML, as a checker of its own: written from the documentation, chapters
"Syntax in YAML", "Checks" (V01 to V13, C01 to C16), "Dialectic Extension" and "Optional module information"."""

REFERENCES = ("supportedBy", "inContextOf")
KNOWN = {
    "text", "supportedBy", "inContextOf", "challenges", "undeveloped", "defeated", "defeatedRelation", "classes",
    "url", "rankIncrement", "horizontalIndex", "nodeType", "charWrap", "acp",
}  # fmt: skip
KINDS = ("CG", "CSn", "G", "Sn", "S", "C", "A", "J")
"""Prefixes, the longer ones before those they begin with."""
MAY_SUPPORT = {"G": {"G", "S", "Sn", "CG", "CSn"}, "S": {"G", "S", "Sn", "CG", "CSn"}, "CG": {"CG", "CSn"}}
MAY_BE_CONTEXT = {"G": {"C", "A", "J"}, "S": {"C", "A", "J"}}


def kind(identifier):
    return next((prefix for prefix in KINDS if identifier.startswith(prefix)), None)


def listed(value):
    return [value] if isinstance(value, str) else value


def complaints(content):
    """Everything that gsn2x would complain about, errors and warnings, as `ID: element`."""
    nodes = {name: node for name, node in content.items() if name != "module"}
    found = list(of_the_module(content))
    for name, node in nodes.items():
        found += of_types(name, node)
        found += of_references(name, node, nodes)
        found += of_challenges(name, node, nodes)
    return found + list(of_the_whole(nodes))


def of_the_module(content):
    module = content.get("module")
    if module is not None and not (isinstance(module.get("name"), str) and isinstance(module.get("brief"), str)):
        yield "module: name and brief are mandatory"
    for name, node in content.items():
        if name != "module" and "name" in node:
            yield f"{name}: would be read as the module"


def of_types(name, node):
    if kind(name) is None:
        yield f"V01: {name}"
    if not isinstance(node.get("text"), str):
        yield f"text: {name}"
    for key in ("undeveloped", "defeated"):
        if not isinstance(node.get(key, True), bool):
            yield f"{key}: {name}"
    if not all(isinstance(each, str) for each in node.get("classes", [])):
        yield f"classes: {name}"
    for key, value in node.items():
        if key not in KNOWN and not isinstance(value, str):
            yield f"layer {key}: {name}"


def of_references(name, node, nodes):
    own = kind(name)
    for key, allowed in (("supportedBy", MAY_SUPPORT), ("inContextOf", MAY_BE_CONTEXT)):
        references = listed(node.get(key, []))
        for each in references:
            if each == name:
                yield f"V06: {name}"
            if each not in nodes:
                yield f"C03: {name} -> {each}"
            elif kind(each) not in allowed.get(own, set()):
                yield f"V04: {name} -> {each}"
        if len(set(references)) != len(references):
            yield f"V05: {name}"
    supported = bool(node.get("supportedBy"))
    if own in ("G", "S") and not supported and not node.get("undeveloped"):
        yield f"V02: {name}"
    if node.get("undeveloped") and supported:
        yield f"V03: {name}"


def of_challenges(name, node, nodes):
    challenged = node.get("challenges")
    if challenged is not None:
        if not isinstance(challenged, str):
            yield f"C11: {name}"
        elif kind(name) not in ("CG", "CSn"):
            yield f"V12: {name}"
        elif challenged == name:
            yield f"C13: {name}"
        elif challenged not in nodes:
            yield f"C14: {name}"
    if node.get("defeated") and not any(each.get("challenges") == name for each in nodes.values()):
        yield f"V10: {name}"


def of_the_whole(nodes):
    referred = {each for node in nodes.values() for key in REFERENCES for each in listed(node.get(key, []))}
    roots = [name for name in nodes if name not in referred and "challenges" not in nodes[name]]
    if len(roots) != 1:
        yield f"C01: {roots}"
    if any(kind(name) != "G" for name in roots):
        yield f"C02: {roots}"
    # C04 and C08: walk from the roots and from what challenges, depth first.
    state = {}

    def walk(name, path):
        if name in path:
            yield f"C04: {name}"
            return
        if name in state:
            return
        for key in REFERENCES:
            for each in listed(nodes[name].get(key, [])):
                if each in nodes:
                    yield from walk(each, {*path, name})
        state[name] = True

    for start in [*roots, *(name for name in nodes if "challenges" in nodes[name])]:
        yield from walk(start, set())
    if set(state) != set(nodes):
        yield f"C08: {sorted(set(nodes) - set(state))}"
