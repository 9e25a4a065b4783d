"""A mutation as a value: the name of a mutator with its parameters, or several one after the other.

    >>> Mutation("jpeg", {"quality": 20}).document()
    {'name': 'jpeg', 'parameters': {'quality': 20}}

As text, a mutation is NAME:PARAMETER=VALUE,PARAMETER=VALUE, and steps are joined by +. Text and document give the
same value back; parameters that have a default and were not given are filled in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, TypeAlias

import numpy as np

from verifier.base.documents import Limits
from verifier.base.errors import InputError, shown, unknown_name
from verifier.robustness.mutators.catalogue import MUTATORS, Mutator, Plain
from verifier.robustness.mutators.frames import Frame


@dataclass(frozen=True)
class Mutation:
    """One mutator with all its parameters, in the order of the catalogue.

    Raises:
        ValueError: an unknown name, an unknown or missing parameter, a value that is not allowed.
    """

    name: str
    parameters: Mapping[str, Plain]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or self.name not in MUTATORS:
            message, hint = unknown_name("mutation", str(self.name), MUTATORS)
            raise ValueError(f"{message}; {hint}")
        object.__setattr__(self, "parameters", MappingProxyType(_completed(MUTATORS[self.name], self.parameters)))

    def __hash__(self) -> int:
        return hash((self.name, tuple(self.parameters.items())))

    @property
    def steps(self) -> tuple[Mutation, ...]:
        """Itself: so that a mutation and a composition can be asked alike."""
        return (self,)

    @property
    def text(self) -> str:
        """As it is parsed; without parameters that have their default."""
        defaults = {parameter.name: parameter.default for parameter in MUTATORS[self.name].parameters}
        given = [f"{name}={_value_text(value)}" for name, value in self.parameters.items() if value != defaults[name]]
        return f"{self.name}:{','.join(given)}" if given else self.name

    @property
    def slug(self) -> str:
        """The text as the name of a folder."""
        return self.text.replace(":", "-").replace("=", "_").replace(",", "-")

    def document(self) -> dict[str, object]:
        """As JSON values."""
        return {"name": self.name, "parameters": dict(self.parameters)}


@dataclass(frozen=True)
class Composition:
    """Mutations one after the other, each of what the one before made.

    Raises:
        ValueError: no step.
    """

    steps: Annotated[tuple[Mutation, ...], Limits(min_length=1)]

    def __post_init__(self) -> None:
        if not self.steps:
            raise ValueError("a composition needs a step")

    @property
    def text(self) -> str:
        """As it is parsed."""
        return "+".join(step.text for step in self.steps)

    @property
    def slug(self) -> str:
        """The text as the name of a folder."""
        return "+".join(step.slug for step in self.steps)

    def document(self) -> dict[str, object]:
        """As JSON values."""
        return {"steps": [step.document() for step in self.steps]}


AnyMutation: TypeAlias = Mutation | Composition


def mutation_of(document: Mapping[str, Any]) -> AnyMutation:
    """The mutation whose `document` this is.

    Raises:
        ValueError: it is none.
    """
    keys = set(document) if isinstance(document, Mapping) else None
    if keys == {"steps"} and isinstance(document["steps"], list):
        steps = [mutation_of(step) for step in document["steps"]]
        return Composition(tuple(step for composition in steps for step in composition.steps))
    if keys != {"name", "parameters"} or not isinstance(document["parameters"], Mapping):
        raise ValueError(f"expected name and parameters, or steps, got {shown(document)}")
    return Mutation(document["name"], document["parameters"])


def needs_depth(mutation: AnyMutation) -> bool:
    """Whether it can only be applied to a frame with depth."""
    return any(MUTATORS[step.name].needs_depth for step in mutation.steps)


def is_random(mutation: AnyMutation) -> bool:
    """Whether it draws at random."""
    return any(MUTATORS[step.name].random for step in mutation.steps)


def moves_boxes(mutation: AnyMutation) -> bool:
    """Whether boxes can lie elsewhere, or be gone, after the mutation."""
    return any(MUTATORS[step.name].moves for step in mutation.steps)


def apply(mutation: AnyMutation, frame: Frame, rng: np.random.Generator | None = None) -> Frame:
    """The frame after the mutation; steps that draw take their numbers from `rng` in order.

    Raises:
        InputError: the mutation needs depth and the frame has none, or the depth does not allow it.
        ValueError: the mutation draws and there is no generator, or a parameter does not fit the image.
    """
    for step in mutation.steps:
        mutator = MUTATORS[step.name]
        if mutator.needs_depth and frame.depth_m is None:
            raise InputError(
                f"{step.name} needs the depth of every pixel, and there is none",
                hint="give depth maps, or one depth for the whole image",
            )
        if mutator.random and rng is None:
            raise ValueError(f"{step.name} draws at random: pass a generator")
        frame = mutator.changed(frame, step.parameters, rng)
    return frame


def generator_for(seed: int, name: str, mutation: AnyMutation) -> np.random.Generator:
    """The generator for one image under one mutation; it depends on nothing else, not on the order of images.

    Raises:
        ValueError: a negative seed.
    """
    digest = hashlib.sha256(f"{name}\0{mutation.text}".encode()).digest()
    return np.random.default_rng([seed, *np.frombuffer(digest, "<u4").tolist()])


def _completed(mutator: Mutator, given: Mapping[str, object]) -> dict[str, Plain]:
    """The parameters with defaults filled in, checked, in order."""
    known = {parameter.name: parameter for parameter in mutator.parameters}
    for name in given:
        if name not in known:
            message, hint = unknown_name(f"parameter of {mutator.name}", str(name), known)
            raise ValueError(f"{message}; {hint}")
    values: dict[str, Plain] = {}
    for name, parameter in known.items():
        value = given.get(name, parameter.default)
        if value is not None:
            try:
                values[name] = parameter.checked(value)
            except ValueError as error:
                raise ValueError(f"{mutator.name}: {error}") from None
        elif not parameter.optional:
            raise ValueError(f"{mutator.name}: {name} is missing, {parameter.expected}")
    if mutator.either and sum(name in values for name in mutator.either) != 1:
        raise ValueError(f"{mutator.name}: give one of {', '.join(mutator.either)}")
    return values


def _value_text(value: Plain) -> str:
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
