"""Specs of the reference systems, cut down to some requirements."""

import json


def spec_of(folder, target, keep):
    """The spec with only those requirements that `keep` names."""
    lines = (folder / "spec.ltl").read_text().splitlines()
    kept = [line for line in lines if ":" not in line or line.partition(":")[0] in keep]
    path = target / "spec.ltl"
    path.write_text("\n".join(kept).replace('"model.toml"', f'"{folder}/model.toml"') + "\n")
    return path


def matrices_of(folder, target):
    """The matrices, in the format of today: false positives under their name, bins of variables under `where`."""
    path = target / "cm.json"
    document = json.loads((folder / "cm.json").read_text())
    document["false_positives"] = document.pop("false_alarms")
    names = [each["name"] for each in document.get("variables", [])]
    for each in document["bins"] if names else ():
        each["where"] = {name: each.pop(name) for name in names}
    path.write_text(json.dumps(document))
    return path
