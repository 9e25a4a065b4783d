"""Specs of the reference systems, cut down to some requirements."""


def spec_of(folder, target, keep):
    """The spec with only those requirements that `keep` names."""
    lines = (folder / "spec.ltl").read_text().splitlines()
    kept = [line for line in lines if ":" not in line or line.partition(":")[0] in keep]
    path = target / "spec.ltl"
    path.write_text("\n".join(kept).replace('"model.toml"', f'"{folder}/model.toml"') + "\n")
    return path


def matrices_of(folder, target):
    """The matrices, whose file calls false positives as it did before there was one vocabulary."""
    path = target / "cm.json"
    path.write_text((folder / "cm.json").read_text().replace('"false_alarms"', '"false_positives"'))
    return path
