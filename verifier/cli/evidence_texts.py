"""What `--help` says of the commands `verify evidence ...`."""

FAMILY_HELP = {
    "evidence": "evidence for an assurance case: build, check, sign and compare bundles, rates and risk per hour",
    "spi": "safety performance indicators: what is counted in the field against what a bundle claims",
}
"""First word of commands that have two, and none of their own -> what they are for."""
SPI = """\
Test what was counted in the field against the indicators of a bundle (spi.json), each by a test that is valid at
every look. FIELD has a line for each look: metric, count, of, and perhaps date; counts since the line of the same
metric before, of so many items, or for rates of so many hours. Exit code 1 where an indicator fired, 3 where one has
no data.

  verify spi check bundle/spi.json field.csv
"""
BUILD = """\
Make a bundle of evidence: run SPEC as verify run does, explain every requirement, find what each asks of the
detector, repeat the run under the other policies that apply, prove probabilities and confidence bounds, and put all
of it with copies of the inputs, report, assurance case, trace and outputs for CI into one folder or archive. Equal
inputs give equal bytes. The digest that is printed stands for all of it: keep it, sign it, demand it in a check.
"""
CHECK = """\
Check a bundle offline: every file against the manifest, documents against their schemas, everything that follows
from inputs and results derived again and compared byte for byte, certificates in rational arithmetic about the system
rebuilt from the bundled inputs, counterexamples replayed on it, probabilities without a certificate enclosed by
the second engine. What is wrong is listed, one line each, and so is what was not checked. Whether requirements are
met is another matter: exit code 0 means that nothing is wrong, 4 that it was changed or cannot be read, 5 that the
program contradicts itself.
"""
SIGN = """\
Check a bundle and sign it: a DSSE envelope over an in-toto statement is added to BUNDLE.sig.json. It names the digest
of the manifest, and so every file, the role, and how the requirements stand. A bundle with a finding is not signed.

  openssl genpkey -algorithm ed25519 -out key.pem
  openssl pkey -in key.pem -pubout -out key.pub
  verify evidence sign BUNDLE --key key.pem --role assessed --by "N. N."
  verify evidence check BUNDLE --signed-by key.pub --role assessed
"""
EXPORT = """\
Check a bundle and write it for other tools: report and assurance case as a Word document (.docx), or what is shown of
requirements into a ReqIF document of your own (--into, .reqif), whose identifiers, texts and links stay. What needs
no library stands in the bundle, in exchange/: the case as SACM and tables, requirements as ReqIF, results for MLTE.

  verify evidence export BUNDLE -o report.docx
  verify evidence export BUNDLE --into requirements.reqif -o verified.reqif
"""
DIFF = """\
What changed between two bundles, and what follows: each claim before and now (unaffected, made again and equal,
better, worse with which probability, newly doubtful), which claims fall by the change, and what has to be done again,
by people too. A claim stands again where the new bundle has what the change asks for. Exit code 3 where one does not.
"""
RATE = """\
The rate at which a requirement fails, per hour of driving: its probability per encounter times the encounters per
hour, both with their uncertainty, compared with an acceptance criterion (ISO 21448, Annex C); and how many hours or
encounters of testing would show the criterion without any model.

  verify evidence rate RESULT.json --requirement NAME --encounters 240 --hours 20 --accept 1e-7/h
  verify evidence rate RESULT.json --requirement NAME --exposure ped=12/h --exposure obs=10..14/h --exposure empty=0/h
"""
RISK = """\
Residual risk: hazardous behaviour and harm per hour of every hazard in CASE, over its conditions with their shares,
the share of encounters in none of them, and the way from behaviour to harm; by exact interval arithmetic, with the
error budget, what the upper end comes from, and which single number, improved, would meet the criterion. CASE names
the matrices of each condition; each RESULT is that of verify run with one of them.

  verify evidence risk case.toml day_run.json night_run.json
"""
TRIGGERS = """\
Triggering conditions of CASE, each once: known and not hazardous, known as hazardous, undecided, without data, or
kept out by a monitor; with items and drives, what each requirement is in it with its bounds, what would decide it,
and how often two of them came together. A RESULT is that of verify run with the matrices of a condition (--where for
a bin of a further variable), or the matrices themselves, whose items are counted.

  verify evidence triggers case.toml low_sun_run.json low_sun.json
"""
QUALIFY = """\
Run the validation suite on this machine, offline: systems solved by hand, published numbers, made-up data, altered
and forged files, hostile input, anomalous conditions, and faults put into the program, each of which must be found.
With --kit the whole tool qualification kit is written, with this run as its report, to be signed. Exit code 1 where a
test failed, 3 where one could not run here.

  verify qualify --by "N. N." --asil D --kit kit.html -o qualification.json
"""
KNOWN_PROBLEMS = """\
The known problems of this program that a bundle or result is touched by, each with its effect and what to do. Exit
code 3 where one of them can make the result look better than it is.

  verify known-problems bundle.zip
"""
USED = """\
Record in the data set record of MATRICES that these verdicts were drawn from them. Each is a look at the data: the
confidence bounds of later runs with the new file allow for all of them.

  verify confusion used results.json run.json -o results_used.json

With --data-set the record says what is stated of the data, as verify confusion --data-set does.
"""
REPORT = """\
One report of any results of this program: the verdicts first, then every requirement with how it fails and what would
help, the matrices, the assumptions and the provenance. The HTML page is one file that needs no network.

  verify report RUN.json EXPLAIN.json REQUIRE.json MATRICES.json -o report.html
  verify report RUN.json -o report.md -o report.csv

Results are what --output of the other commands writes; matrices belong to a result where their SHA-256 is that of its
input. Which explanations belong to which run is found from the inputs that both name.
"""
