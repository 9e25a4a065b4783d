"""What people may state of the brakes in `brake`, at random: documents, hazards, conditions and answers to doubts."""

import csv
import io

CLAIMS = (
    "requirements", "model", "odd", "training_data", "test_data", "counting", "integration", "assumptions",
    "exposure", "acceptance", "independence", "tool", "memory", "statistics", "conditions", "harm", "triggers",
)  # fmt: skip
WRONG = (
    {"valid_until": "2026-02-01"}, {"sha256": f'"{"0" * 64}"'}, {"file": '"docs/none.txt"'},
    {"file": '"docs/empty.txt"'}, {"grade": '"declared"'},
)  # fmt: skip
TRAINED = (
    "", "trained_on = []", 'trained_on = ["day_*", "night"]', 'trained_list = "docs/list.txt"',
    'trained_list = "docs/csv.txt"',
)  # fmt: skip
ENVIRONMENTS = ("ped", "empty")


def random_context(folder, rng, names, own, *, risk=True):
    """The text of a context of requirements of these names, and the files it names in the folder; `own` are the
    matrices of the run."""
    (folder / "docs").mkdir(exist_ok=True)
    for name, text in (("empty", ""), ("list", "train_1\n"), ("csv", "day_00,3\n")):
        (folder / f"docs/{name}.txt").write_text(text)
    share = rng.choice([0, 0.5, 1])
    claims = [each for each in CLAIMS if rng.random() < share]
    lines = [f"[detector]\n{rng.choice(TRAINED)}", f"[responsible]\n{rng.choice(CLAIMS[:12])} = 'N. N.'"]
    for claim in claims:
        (folder / f"docs/{claim}.txt").write_text(f"{claim}\n")
        told = {"file": f'"docs/{claim}.txt"', "grade": rng.choice(['"tested"', '"documented"'])}
        told |= rng.choice(WRONG) if rng.random() < 0.05 else {}
        lines += [f'[evidence.{claim}]\nclaim = "{claim}"\ntitle = "T"\nauthor = "N. N."\ndate = 2026-01-05']
        lines += [f"{key} = {value}" for key, value in told.items()]
    if rng.random() < 0.6:
        met = {"every": 12} if rng.random() < 0.3 else {name: rng.choice([0, 12]) for name in ENVIRONMENTS}
        lines += [f"[exposure.{name}]\nper_hour = {rate}" for name, rate in met.items()]
        lines += [
            f"[acceptance.{name}]\nper_hour = {rng.choice(['1e-9', '50'])}" for name in names if rng.random() < 0.4
        ]
        if risk:
            lines += list(_hazards(rng, names, own))
    if rng.random() < 0.3:
        lines += ['[trigger.fog]\ntext = "Fog"', rng.choice(["", 'matrices = "night.json"', 'excluded_by = "Radar"'])]
    return "\n".join([*lines, ""])


def _hazards(rng, names, own):
    if rng.random() < 0.4:
        day = rng.choice([0.3, 0.9])
        for name, share in (("day", day), ("night", round(1 - day, 1))):
            known = name == own or rng.random() < 0.5
            yield f"[condition.{name}]\nshare = {share}" + (f'\nmatrices = "{name}.json"' if known else "")
        yield rng.choice(["", "[unknown]\nat_most = 0", "[unknown]\nclassified = 300\nleft_over = 1"])
        for at in range(rng.randint(1, 3)):
            chain = rng.choice(["", "uncontrolled = [0.1, 0.3]"])
            limit = rng.choice(["", "accept_harm_per_hour = 1e-9", "accept_harm_per_hour = 1e3"])
            yield f'[hazard.H{at}]\nevent = "{rng.choice(names)}"\n{chain}\n{limit}'


def random_answers(bundle, rng):
    """Answers to some of the doubts of a bundle, some of them to other numbers, or on no evidence."""
    rows = csv.DictReader(io.StringIO(bundle.files["trace.csv"].decode()))
    doubts = {tuple(each.split(" ")[:2]) for row in rows for each in row["doubts"].split("; ") if each}
    proofs = [name for name in CLAIMS if f"inputs/context/docs/{name}.txt" in bundle.files]
    for key, digest in sorted(doubts):
        if rng.random() < 0.7:
            decision = rng.choice(["accepted", "refuted", "open"])
            proof = f'evidence = "{rng.choice(proofs)}"\n' if proofs else ""
            decision = "accepted" if decision == "refuted" and not proof else decision
            said = f'reason = "R"\nby = "N. N."\ndate = 2026-01-06\n{proof}'
            doubt = digest if rng.random() < 0.8 else "0" * 8
            yield f'[disposition."{key}"]\ndecision = "{decision}"\ndoubt = "{doubt}"\n{said}'
