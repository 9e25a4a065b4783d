"""What explanations and answers about recall say of a requirement of a report: how it fails, what would help."""

from __future__ import annotations

from collections.abc import Iterator

from verifier.evidence.report.subjects import Subject
from verifier.telling.blocks import Block, Section
from verifier.telling.explain import improving_blocks, improving_sentence
from verifier.telling.failing import cause_lines, failing_blocks
from verifier.telling.require import answer_blocks, answer_text
from verifier.telling.wording import sentence


def explained_sections(subject: Subject) -> Iterator[Section]:
    """How it fails, once per explanation, and what to improve; none where nothing of that is known."""
    for document, explained in subject.explained:
        more = f" ({document.name})" if len(subject.explained) > 1 else ""
        yield Section(f"How it fails{more}", tuple(failing_blocks(document.result, explained)), listed=False)
    helping: list[Block] = []
    for document, explained in subject.explained:
        helping += improving_blocks(document.result, explained)
    for document, answer in subject.answers:
        helping += answer_blocks(document.result, answer, document.name)
    if helping:
        yield Section("What to improve", tuple(helping), listed=False)


def explained_sentences(subject: Subject) -> Iterator[str]:
    """What it is lost by first of all, and what would help most, a sentence for each as far as they are known."""
    for document, explained in subject.explained:
        first = next(cause_lines(document.result, explained), None)
        if first is not None:
            yield f"{first}."
            break
    told = [improving_sentence(document.result, explained) for document, explained in subject.explained[:1]]
    told += [f"{sentence(answer_text(document.result, answer))}." for document, answer in subject.answers[:1]]
    helping = " ".join(text for text in told if text is not None)
    if helping:
        yield helping
