"""What names and atoms stand for, told from what is declared."""

import pytest

from verifier.base.errors import InputError
from verifier.language.expressions import Source, check_type, parse_expression
from verifier.language.expressions.syntax import Name

TYPES = {"x": "number", "a": "boolean"}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("x + 1", "number"),
        ("x > 1 & a", "boolean"),
        ("count(ped) + x", "number"),
        ("sees(ped) | report(o) = car", "boolean"),
        ("present(o)", "boolean"),
        ("ite(a, x, count(car))", "number"),
        ("ite(x = 1, a, sees(car))", "boolean"),
        ("a", "boolean"),
    ],
)
def test_kinds(text, kind):
    assert check_type(parse_expression(text), TYPES, Source(text), kind, reports=True) == kind


@pytest.mark.parametrize(
    ("text", "reports", "message"),
    [
        ("x & a", True, "expected a condition, found 'x', which is a number"),
        ("a + 1", True, "expected a number, found 'a', which is a condition"),
        ("ite(a, x, a)", True, "expected a number, found 'a', which is a condition"),
        ("ite(a, a, x)", True, "expected a condition, found 'x', which is a number"),
        ("y", True, "unknown name 'y'"),
        ("sees(ped)", False, "sees(...) has no meaning here"),
        ("report(o)", True, "report(o) is a class: write report(o) = CLASS or != CLASS"),
        ("x", True, "expected a condition, found 'x', which is a number"),
    ],
)
def test_what_does_not_fit_is_refused_where_it_stands(text, reports, message):
    with pytest.raises(InputError) as caught:
        check_type(parse_expression(text), TYPES, Source(text, "a.toml", "when"), "boolean", reports)
    assert caught.value.message == message
    assert caught.value.place.file == "a.toml"


def test_what_was_not_read_is_refused_in_the_text_that_is_given():
    with pytest.raises(InputError) as caught:
        check_type(Name("y"), TYPES, Source("y", "a.toml", "when"))
    assert (caught.value.place.file, caught.value.place.path) == ("a.toml", "when")
