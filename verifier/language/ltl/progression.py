"""Formula progression: what remains to be satisfied after reading one more position of a path.

    path, position 0, 1, 2, ... satisfies f    iff    path, position 1, 2, ... satisfies progress(f, letter 0)

(Bacchus and Kabanza, Using temporal logics to express search control knowledge for planning, AIJ 2000, section
3.2.) On formulas in positive normal form, with <m> for one step less, progress distributes over `&` and `|`, and

    progress(X[n] a)     = X[n-1] a
    progress(a U[i,j] b) = progress(a) & a U[<i>,<j>] b                      when i > 0
                         = progress(b) | (progress(a) & a U[0,<j>] b)        when i = 0; the second part needs j > 0
    progress(a R[i,j] b) = the same with & and | exchanged

What remains is an *obligation*, in a form that keeps the number of different obligations finite and small:

* The formula's own top-level `&` and `|` stay as they are; each part below them progresses on its own and leaves
  when it is decided. Ten requirements side by side never multiply out.
* A part is a disjunction of conjunctions (terms) of nodes of the normal form. There are finitely many nodes, so
  finitely many such parts: this is what makes the progression finite.
* Within a term, a node implied by another is dropped; so is a term that implies another. "Implied" is a sound
  syntactic order: `G a` implies `a` implies `F a`, `F[0,3] a` implies `F[0,5] a`, and so on. So `G F a` has one
  obligation, itself, because the pending `F a` is implied by it.

Some formulas still need very many obligations (`G F[100,200] a` has to remember a subset of 100 positions); the
limits turn those into an error instead of a computation without end.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from verifier.base.errors import NoAnswerError
from verifier.language.expressions.syntax import Node
from verifier.language.ltl.normal_form import FALSE_NODE, TRUE_NODE, PositiveFormula

REJECT = 0
"""Number of the obligation `false`: no continuation satisfies the formula."""
ACCEPT = 1
"""Number of the obligation `true`: every continuation does."""

Terms: TypeAlias = "frozenset[frozenset[int]]"
_NOTHING: Terms = frozenset()
_ANYTHING: Terms = frozenset({frozenset()})
_WORK_LIMIT = 20_000_000
"""Comparisons of terms, some seconds' worth; a requirement that people write needs a few thousand."""


@dataclass(frozen=True, slots=True)
class Obligation:
    """What remains to be satisfied: `&` or `|` over other obligations, or a disjunction of terms.

    `kind` is `&`, `|` or `terms`. `parts` are the numbers of the operands of `&` and `|`. `terms` is a set of
    sets of nodes of the `PositiveFormula`: the disjunction over the outer, the conjunction over the inner sets.
    """

    kind: str
    parts: frozenset[int] = frozenset()
    terms: Terms = _NOTHING


class Obligations:
    """The obligations of one formula, numbered in the order in which progression meets them.

    Attributes:
        formula: the positive normal form, whose nodes the obligations speak about.
        initial: the obligation before anything is read.

    Raises:
        NoAnswerError: from the constructor and `progress`, when the formula needs more than `limit` obligations, or
            so many terms in each that comparing them would take minutes.
    """

    def __init__(self, formula: Node, limit: int = 100_000) -> None:
        self.formula = PositiveFormula(formula)
        self._limit = limit
        self._work_left = _WORK_LIMIT
        self._table: list[Obligation] = []
        self._support: list[int] = []
        self._numbers: dict[Obligation, int] = {}
        self._progressed: dict[tuple[int, int], int] = {}
        self._terms_after: dict[tuple[int, int], Terms] = {}
        self._implications: dict[tuple[int, int], bool] = {}
        self._structures: dict[int, int] = {}
        self._nodes_in: dict[int, frozenset[int]] = {}
        self._intern(Obligation("terms", terms=_NOTHING))
        self._intern(Obligation("terms", terms=_ANYTHING))
        self.initial = self._top_level(self.formula.root)

    def __len__(self) -> int:
        return len(self._table)

    def __getitem__(self, number: int) -> Obligation:
        return self._table[number]

    def progress(self, number: int, letter: int) -> int:
        """The obligation after a position whose propositions are the bits of `letter`."""
        key = (number, letter & self._support[number])
        known = self._progressed.get(key)
        if known is not None:
            return known
        obligation = self._table[number]
        if obligation.kind == "terms":
            progressed = _NOTHING
            for term in obligation.terms:
                progressed = self._either(progressed, self._progress_all(term, letter))
            result = self._intern(Obligation("terms", terms=progressed))
        else:
            result = self._combine(obligation.kind, [self.progress(part, letter) for part in obligation.parts])
        self._progressed[key] = result
        return result

    def nodes_in(self, number: int) -> frozenset[int]:
        """The nodes of the normal form that the obligation mentions."""
        known = self._nodes_in.get(number)
        if known is None:
            obligation = self._table[number]
            parts = obligation.terms if obligation.kind == "terms" else map(self.nodes_in, obligation.parts)
            known = self._nodes_in[number] = frozenset().union(*parts)
        return known

    def _top_level(self, node_number: int) -> int:
        """The obligation for a node; parts that occur twice, as in `a xor b`, are built once."""
        known = self._structures.get(node_number)
        if known is None:
            known = self._structures[node_number] = self._structure(node_number)
        return known

    def _structure(self, node_number: int) -> int:
        node = self.formula.nodes[node_number]
        if node.kind in ("&", "|"):
            return self._combine(node.kind, [self._top_level(operand) for operand in node.operands])
        if node.kind == "X" and self.formula.nodes[node.operands[0]].kind in ("&", "|"):
            junction = self.formula.nodes[node.operands[0]]
            delayed = [self.formula.after(node.low, operand) for operand in junction.operands]
            return self._combine(junction.kind, [self._top_level(number) for number in delayed])
        return self._intern(Obligation("terms", terms=self._as_terms(node_number)))

    def _combine(self, kind: str, parts: Iterable[int]) -> int:
        neutral, absorbing = (ACCEPT, REJECT) if kind == "&" else (REJECT, ACCEPT)
        members: set[int] = set()
        for part in parts:
            members.update(self._table[part].parts if self._table[part].kind == kind else (part,))
        members.discard(neutral)
        if absorbing in members:
            return absorbing
        if len(members) <= 1:
            return members.pop() if members else neutral
        return self._intern(Obligation(kind, parts=frozenset(members)))

    def _intern(self, obligation: Obligation) -> int:
        known = self._numbers.get(obligation)
        if known is not None:
            return known
        if len(self._table) >= self._limit:
            raise NoAnswerError(
                f"the formula has more obligations (states of a deterministic monitor) than the limit, {self._limit}",
                hint="split the requirement, or shorten the windows of its bounded operators",
            )
        support = 0
        for part in obligation.parts:
            support |= self._support[part]
        for term in obligation.terms:
            for node in term:
                support |= self.formula.support[node]
        self._table.append(obligation)
        self._support.append(support)
        self._numbers[obligation] = len(self._table) - 1
        return len(self._table) - 1

    def _progress_all(self, term: Iterable[int], letter: int) -> Terms:
        """Progress of the conjunction of the nodes in `term`."""
        factors = {self._progress_node(node, letter) for node in term}
        if _NOTHING in factors:
            return _NOTHING
        single = [next(iter(factor)) for factor in factors if len(factor) == 1]
        result: Terms = frozenset({self._reduced(frozenset().union(*single))})  # one reduction, not one for each
        for factor in sorted((factor for factor in factors if len(factor) > 1), key=len):
            result = self._both(result, factor)
        return result

    def _progress_node(self, number: int, letter: int) -> Terms:
        key = (number, letter & self.formula.support[number])
        known = self._terms_after.get(key)
        if known is None:
            known = self._terms_after[key] = self._compute_progress(number, letter)
        return known

    def _compute_progress(self, number: int, letter: int) -> Terms:
        node = self.formula.nodes[number]
        if node.kind in ("false", "true"):
            return _ANYTHING if node.kind == "true" else _NOTHING
        if node.kind in ("holds", "fails"):
            return _ANYTHING if bool(letter >> node.low & 1) == (node.kind == "holds") else _NOTHING
        if node.kind == "&":
            return self._progress_all(node.operands, letter)
        if node.kind == "|":
            result = _NOTHING
            for operand in node.operands:
                result = self._either(result, self._progress_node(operand, letter))
            return result
        if node.kind == "X":
            return self._as_terms(self.formula.after(node.low - 1, node.operands[0]))
        return self._progress_fixpoint(number, letter)

    def _progress_fixpoint(self, number: int, letter: int) -> Terms:
        node = self.formula.nodes[number]
        left, right = node.operands
        until = node.kind == "U"
        high = None if node.high is None else node.high - 1  # which is not 0: `a U[0,0] b` is b
        later = self.formula.fixpoint(node.kind, left, right, max(node.low - 1, 0), high)
        outer, inner = (self._either, self._both) if until else (self._both, self._either)
        continued = inner(self._progress_node(left, letter), self._as_terms(later))
        return continued if node.low > 0 else outer(self._progress_node(right, letter), continued)

    def _as_terms(self, number: int) -> Terms:
        node = self.formula.nodes[number]
        if number in (FALSE_NODE, TRUE_NODE):
            return _ANYTHING if number == TRUE_NODE else _NOTHING
        if node.kind not in ("&", "|"):
            return frozenset({frozenset({number})})
        result = _ANYTHING if node.kind == "&" else _NOTHING
        for operand in node.operands:
            combine = self._both if node.kind == "&" else self._either
            result = combine(result, self._as_terms(operand))
        return result

    def _either(self, left: Terms, right: Terms) -> Terms:
        if left == right or not right:
            return left
        return right if not left else self._without_implied(left | right)

    def _both(self, left: Terms, right: Terms) -> Terms:
        if left == right or right == _ANYTHING:
            return left
        if left == _ANYTHING:
            return right
        self._spend(len(left) * len(right))
        return self._without_implied({self._reduced(a | b) for a in left for b in right})

    def _reduced(self, term: frozenset[int]) -> frozenset[int]:
        """The conjunction `term` without the nodes that its other nodes imply."""
        if len(term) < 2:
            return term
        self._spend(len(term) ** 2)
        kept: list[int] = []
        for node in sorted(term):
            if not any(self.implies(other, node) for other in kept):
                kept = [other for other in kept if not self.implies(node, other)]
                kept.append(node)
        return frozenset(kept)

    def _without_implied(self, terms: Iterable[frozenset[int]]) -> Terms:
        """The disjunction `terms` without the terms that imply another one of them."""
        kept: list[frozenset[int]] = []
        for term in sorted(terms, key=lambda term: (len(term), sorted(term))):
            self._spend(len(kept) + 1)
            if not any(self._term_implies(term, other) for other in kept):
                kept = [other for other in kept if not self._term_implies(other, term)]
                kept.append(term)
        return frozenset(kept)

    def _term_implies(self, stronger: frozenset[int], weaker: frozenset[int]) -> bool:
        return all(node in stronger or any(self.implies(s, node) for s in stronger) for node in weaker)

    def _spend(self, amount: int) -> None:
        self._work_left -= amount
        if self._work_left < 0:
            raise NoAnswerError(
                f"the formula needs more than {_WORK_LIMIT} comparisons of terms to become deterministic; "
                f"it has {len(self._table)} obligations so far",
                hint="split the requirement, or shorten the windows of its bounded operators",
            )

    def implies(self, stronger: int, weaker: int) -> bool:
        """Whether a syntactic rule shows that every path with `stronger` has `weaker` too."""
        if stronger in (weaker, FALSE_NODE) or weaker == TRUE_NODE:
            return True
        known = self._implications.get((stronger, weaker))
        if known is None:
            known = self._implications[stronger, weaker] = self._find_implication(stronger, weaker)
        return known

    def _find_implication(self, stronger: int, weaker: int) -> bool:
        s, w = self.formula.nodes[stronger], self.formula.nodes[weaker]
        if w.kind == "&":
            return all(self.implies(stronger, operand) for operand in w.operands)
        if s.kind == "|":
            return all(self.implies(operand, weaker) for operand in s.operands)
        if w.kind == "|" and any(self.implies(stronger, operand) for operand in w.operands):
            return True
        if s.kind == "&" and any(self.implies(operand, weaker) for operand in s.operands):
            return True
        if w.kind == "U" and w.low == 0 and self.implies(stronger, w.operands[1]):
            return True  # b implies a U b
        if s.kind == "R" and s.low == 0 and self.implies(s.operands[1], weaker):
            return True  # a R b implies b
        if s.kind != w.kind or s.kind not in ("X", "U", "R"):
            return False
        if s.kind == "X":
            return s.low == w.low and self.implies(s.operands[0], w.operands[0])
        inner, outer = (s, w) if s.kind == "U" else (w, s)
        ends_inside = outer.high is None or (inner.high is not None and inner.high <= outer.high)
        return ends_inside and inner.low >= outer.low and all(map(self.implies, s.operands, w.operands))
