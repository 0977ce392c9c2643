from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bittern.errors import InputError, UnknownNameError
from bittern.metrics import METRICS, MetricName, parse

RULES = ["optimistic", "pessimistic", "database-order", "trec"]
# fmt: off
OF_THE_DESIGN = [
    "ap", "ndcg", "dcg", "rr", "r-precision", "precision@100", "recall@100", "f1@100", "ap@5000",
    "ndcg@100", "precision@r2", "recall@r2", "f1@r2", "ap:optimistic", "ap:pessimistic",
    "ap:trec", "ap@5000:retrieved", "ndcg:linear", "micro-precision@r2", "micro-recall@r2",
    "micro-f1@r2", "auprc", "auprc:trapezoid", "interpolated-ap", "ndcg@100:linear",
    "hit-rate@10", "f0.5@100", "f2@r2", "macro-f1@r2", "macro-f1@100", "macro-f0.5@r2:empty-zero",
    "ap:database-order", "ndcg@100:linear:database-order",
]
ILL_WRITTEN = [
    "AP", "Ap", "ap@0", "ap@-1", "ap@01", "ap@1.5", "ap@", "ap@r", "ap:", "ap::", ":linear", "@5",
    "ap@5@6", "ap@r2@5", "precision@r-1", "precision@r02", "precision@R2", "ap@1e3", "f1.0@5",
    "f01@5", "f.5@5", "f-1@5", "ap@5:LINEAR", "-ap", "ap-", "r--precision", "ap@５", "ap@1_000",
    "", " ap", "ap ", "ap\n", "ap @5", "ap, ndcg",
]
# fmt: on
positive = st.integers(1, 10**12)
betas = st.one_of(
    st.integers(1, 20).map(str),
    st.tuples(st.integers(0, 20), st.integers(0, 99), st.integers(1, 9)).map(
        lambda d: f"{d[0]}.{d[1]}{d[2]}"
    ),
)


@st.composite
def legal_names(draw):
    """Any metric of the table, a place that it takes, its options in order, a rule for ties."""
    base = draw(st.sampled_from(sorted(METRICS)))
    metric = METRICS[base]
    if base.endswith("f1"):
        base = base[:-1] + draw(betas)
    places = [""] * (not metric.needs_place) + ["@"] * metric.cutoff + ["@r"] * metric.radius
    place = draw(st.sampled_from(places))
    number = {"": "", "@": str(draw(positive)), "@r": str(draw(st.integers(0, 4096)))}[place]
    choices = [option for option in metric.options if option != "empty-zero" or place == "@r"]
    options = draw(st.sampled_from(list(subsets(choices))))
    ordered = metric.ranked and place != "@r"
    rules = draw(st.sampled_from([(), *((rule,) for rule in RULES)])) if ordered else ()
    return base + place + number + "".join(f":{option}" for option in (*options, *rules))


def subsets(options):
    return chain.from_iterable(combinations(options, n) for n in range(len(options) + 1))


@settings(max_examples=500, deadline=None)
@given(legal_names())
def test_a_legal_name_survives_the_trip_through_text(name):
    parsed = parse(name)
    assert str(parsed) == name
    assert parse(str(parsed)) == parsed
    assert hash(parse(name)) == hash(parsed)


@settings(max_examples=500, deadline=None)
@given(st.text(st.sampled_from("apfr-@:.012 \nndcg"), max_size=12))
def test_what_is_accepted_is_written_back_as_it_came(text):
    try:
        parsed = MetricName.parse(text)
    except InputError:
        return
    assert str(parsed) == text


@pytest.mark.parametrize("name", OF_THE_DESIGN)
def test_every_name_of_the_design_is_known(name):
    assert str(parse(name)) == name


def test_a_name_has_its_parts():
    name = parse("ndcg@100:linear:optimistic")
    assert (name.metric, name.cutoff, name.radius) == ("ndcg", 100, None)
    assert name.options == ("linear", "optimistic")
    assert name.tie_rule == "optimistic"
    assert name.has("linear")
    assert not name.has("trec")
    assert parse("precision@r0").radius == 0
    assert parse("ap").tie_rule is None


def test_a_parsed_name_is_parsed_again_to_itself():
    assert parse(parse("ap@10")) == parse("ap@10")


@pytest.mark.parametrize("text", ILL_WRITTEN)
def test_what_is_not_written_like_a_metric_is_refused(text):
    with pytest.raises(InputError, match=r"written like 'ap', 'ap@1000'.*got"):
        parse(text)


@pytest.mark.parametrize("thing", [None, 5, b"ap", ["ap"]])
def test_what_is_not_text_is_refused(thing):
    with pytest.raises(InputError, match="a metric is written like"):
        parse(thing)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("auprc@5", "'auprc@5': auprc takes no cut-off"),
        ("r-precision@5", "r-precision takes no cut-off"),
        ("interpolated-ap@5", "takes no cut-off"),
        ("ap@r2", "'ap@r2': ap takes no radius"),
        ("rr@r2", "rr takes no radius"),
        ("precision", "precision needs a cut-off or a radius, like 'precision@100'"),
        ("micro-f1", "needs a cut-off or a radius"),
        ("f2", "f2 needs a cut-off or a radius"),
        ("hit-rate", "needs a cut-off or a radius"),
        ("ap:linear", "ap has no option 'linear'; it has retrieved, optimistic"),
        ("ndcg:retrieved", "ndcg has no option 'retrieved'"),
        ("ap:best", "ap has no option 'best'"),
        ("precision@5:empty-zero", "only a radius can be empty"),
        ("recall@r2:empty-zero", "recall has no option 'empty-zero'"),
        ("precision@r2:optimistic", "their order does not matter; leave out ':optimistic'"),
        ("auprc:pessimistic", "order does not matter"),
        ("interpolated-ap:trec", "order does not matter"),
        ("micro-recall@r2:trec", "order does not matter"),
        ("ap:retrieved:retrieved", "each option may come once"),
        ("ap:optimistic:pessimistic", "each option may come once"),
        ("ap:optimistic:retrieved", "the rule for ties last"),
        ("ndcg:trec:linear", "the rule for ties last"),
        ("f0@5", "β must be above 0"),
        ("micro-f0@5", "β must be above 0"),
    ],
)
def test_a_name_that_says_what_it_cannot_is_refused(name, says):
    with pytest.raises(InputError, match=says):
        parse(name)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ndgc", "no metric is called 'ndgc'; did you mean 'ndcg'"),
        ("map", "no metric is called 'map'; did you mean 'ap'"),
        ("ap5", "no metric is called 'ap5'"),
        ("xyzzy", "there are ap, ndcg"),
    ],
)
def test_an_unknown_metric_is_refused_kindly(name, says):
    with pytest.raises(UnknownNameError, match=says):
        parse(name)


@pytest.mark.parametrize(
    "parts",
    [
        {"metric": "ap", "cutoff": 0},
        {"metric": "ap", "cutoff": -1},
        {"metric": "ap", "cutoff": 2.5},
        {"metric": "precision", "radius": -1},
        {"metric": "precision", "cutoff": 3, "radius": 1},
        {"metric": "AP"},
    ],
    ids=str,
)
def test_a_name_put_together_by_hand_is_checked_too(parts):
    with pytest.raises((InputError, UnknownNameError)):
        parse(MetricName(**parts))


@pytest.mark.parametrize(
    "name",
    [f"ap@{2**63}", f"f{'1' * 200}@5", f"f{'1' * 400}@5"],
    ids=["cut-off", "square of beta", "beta"],
)
def test_numbers_too_large_for_the_machine_are_refused(name):
    with pytest.raises(InputError):
        parse(name)
