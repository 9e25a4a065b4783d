"""The pages of the Python API, for MkDocs: mkdocstrings shows the docstrings of what `verifier` exports."""

import re
from typing import Any

import griffe
from mkdocs.structure.files import File, Files

RESULTS = (
    "verifier.base.result.Result",
    "verifier.study.results.RunResult",
    "verifier.questions.explain.explain_result.ExplainResult",
    "verifier.questions.require.require_result.RequireResult",
    "verifier.questions.compare.compare_result.CompareResult",
    "verifier.collision.result.CollisionResult",
    "verifier.closedloop.trade_offs.TradeOffs",
    "verifier.robustness.assessment.document.AssessResult",
    "verifier.robustness.campaign.result.CampaignResult",
    "verifier.perception.confusion.counts.ConfusionCounts",
    "verifier.perception.confusion.request.ConfusionMetric",
    "verifier.chains.chain.MarkovChain",
)
PAGES = {
    "api.md": ["# Python: functions", "::: verifier"],
    "api-results.md": ["# Python: results", *(f"::: {name}" for name in RESULTS)],
}


class Doctests(griffe.Extension):
    """Doctests of a docstring become blocks of code; to Markdown they are prose."""

    def on_object(self, *, obj: griffe.Object, **others: Any) -> None:
        """Fence each paragraph that begins with a prompt."""
        if obj.docstring:
            obj.docstring.value = re.sub(r"(?m)(^>>> (?:.+\n?)+)", r"```pycon\n\1\n```\n", obj.docstring.value)


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages, which are no pages of `verify manual`."""
    for name, parts in PAGES.items():
        files.append(File.generated(config, name, content="\n\n".join(parts)))
    return files
