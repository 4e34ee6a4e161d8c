# SPDX-License-Identifier: Apache-2.0
"""A study's answer in words that a board reads in a minute, each sentence made of the numbers beside it."""

from __future__ import annotations
from typing import Literal

import math

from iocast.runs.limits_of import LEAD
from iocast.wording.notes_of_answers import first_paths
from iocast.study.amounts import (
    amount,
    chance,
    is_confident,
    kept_with,
    is_kept,
    is_kept_now,
    is_priced,
    margin,
    money,
    nearness,
    percent_off,
    place,
    quoted,
    reference,
    tightest,
)
from iocast.study.evaluate import Elsewhere
from iocast.records.study import (
    Breaks,
    Conclusion,
    DesignDocument,
    Failing,
    LevelRow,
    NearestMiss,
    Needed,
    OtherConfidence,
    Relaxation,
    Rival,
    StudyDocument,
    Why,
)

AS_NEAR = 1.1
"""Designs that miss their tightest level within this factor are equally near: no model is that good."""
SMALL_CHANGE = 2.5
"""A limit that would have to give by more than this factor is no small concession."""
MAX_MISSED = 3
"""Levels that are named as missed by one design."""
MAX_TURNING = 3
"""Uncertain inputs that are named as changing the decision."""
_PARTS = {
    "wait": "waiting for a server",
    "service": "being served",
    "lock_wait": "waiting for a lock",
    "stall": "standing still in stalls",
    "lost": "being lost in failures",
}


def sentence(answer: StudyDocument) -> str:
    """The decision, its cost and its confidence."""
    words = f"{100 * answer['confidence_asked']:g} %"
    looked = [d for d in answer["designs"] if d["basis"] != "beyond limits"]
    count = len(answer["levels"])
    levels = {1: "its service level", 2: "both service levels"}.get(count, f"all {count} service levels")
    if answer["decision"]:
        d = answer["decision"]
        cost = f" for {money(d['cost'], answer['currency'])}" if any(x["cost"] for x in answer["designs"]) else ""
        kept = kept_with(answer, answer["confidence"])
        sure = f" with {kept} confidence (required: {words})"
        if not is_confident(answer):
            sure = ", how surely is not known"
        return f"Choose {quoted(d['name'])}{cost}: it keeps {levels}{sure}{if_it_holds(answer)}."
    miss = answer["nearest_miss"]
    assert miss is not None  # where there is no decision
    kept = kept_with(answer, miss["probability"])
    return (
        f"None of the {len(looked)} designs within the limits keeps {levels} with {words} confidence; the nearest, "
        f"{quoted(miss['name'])}, does with {kept}{if_it_holds(answer)}."
    )


def if_it_holds(answer: StudyDocument) -> str:
    """Whose numbers a study rests on, where iocast did not fit its platform."""
    platform, design = answer["platform"], reference(answer)
    values = design["values"] if design else {}
    swapped = [
        value
        for axis in answer.get("axes", [])
        for value in axis["values"]
        if value["platform"] and values.get(axis["name"]) == value["name"]
    ]
    if swapped:  # files of earlier versions don't know which of these were calibrated
        calibrated = bool(swapped[-1].get("calibrated", platform["calibrated"]))
        platform = {"name": str(swapped[-1]["platform"]), "calibrated": calibrated}
    if parts := first_paths(platform.get("unmeasured") or {}):
        return f", if the numbers of {quoted(platform['name'])} hold: nothing measured its {parts}"
    if platform["calibrated"] or platform.get("published"):
        return ""
    by = platform.get("set_by_hand_to")
    why = f"its author set them by hand to measurements of {by}" if by else "nobody calibrated it"
    return f", if the numbers of {quoted(platform['name'])} hold: {why}"


def measured_beside(answer: StudyDocument, row: LevelRow) -> list[str]:
    """Values of the measured systems of the family (`answer["family"]`) beside a level's row; "-" where there are
    none."""
    family = answer.get("family")
    if not family:
        return []
    where: tuple[Literal["level", "workload", "scale"], ...] = ("level", "workload", "scale")
    values = next((one["values"] for one in family["levels"] if all(one[key] == row[key] for key in where)), {})
    found = [values.get(system["name"]) for system in family["systems"]]
    return ["-" if value is None or row["under"] else amount(row["quantity"], value) for value in found]


def systems_beside(answer: StudyDocument) -> list[str]:
    """Names of these systems."""
    return [system["name"] for system in (answer.get("family") or {"systems": []})["systems"]]


def conclusions(answer: StudyDocument) -> list[Conclusion]:
    """What a board asks next, as {about, text}."""
    texts = {
        "What it is": _what(answer),
        "What came nearest": _nearest(answer),
        "Why not cheaper": _cheaper(answer),
        "Which levels decide": _levels(answer),
        "Where it ends": _ends(answer),
        "What would change it": _changes(answer),
        "What matters most": _matters(answer),
        "Measure before signing": _measure(answer),
        "How it was found": _found(answer),
    }
    return [{"about": about, "text": words} for about, words in texts.items() if words]


def question(answer: StudyDocument) -> str:
    """The study's question in its author's words, and how many designs, levels and clients that is."""
    looked = sum(d["basis"] != "beyond limits" for d in answer["designs"])
    levels, ranks = len(answer["levels"]), answer["scales"][-1]["ranks"]
    which = "is the cheapest that keeps" if is_priced(answer) else "keeps"
    designs = f"Which of {looked} designs" if looked > 1 else "Does the design keep"
    at = f"{'up to ' * (len(answer['scales']) > 1)}{ranks:,} clients"
    rest = f"{'its service level' if levels == 1 else f'{levels} service levels'} at {at}"
    required = f"with {100 * answer['confidence_asked']:g} % confidence"
    counted = f"{designs} {which} {rest}, {required}?" if looked > 1 else f"{designs} {rest}, {required}?"
    own = " ".join(answer["question"].split())
    mark = own.rstrip("\"'\u201d\u2019)")[-1:]
    ended = mark in ("", ".", "?", "!")  # the last sentence of a YAML value is often without a mark
    return f"{own}{'' if ended else '?'} {counted}".lstrip()


def rivals(answer: StudyDocument) -> list[Rival]:
    """The runner-up, and where that isn't cheaper the cheaper design that comes nearest, each with `name`, `cost`,
    `difference` from the decision, `probability` and `why` it lost.

    The runner-up is the design that would be chosen without the decision: of others that keep all levels the cheapest,
    or else the likeliest to keep them. Without a decision the nearest miss takes its place."""
    chosen = reference(answer)
    others = [d for d in answer["designs"] if d["basis"] != "beyond limits" and chosen and d["id"] != chosen["id"]]
    if chosen is None or not others:
        return []
    meeting = [d for d in others if d["meets"]]
    found = [min(meeting, key=lambda d: d["cost"]) if meeting else max(others, key=nearness)]
    cheaper = [d for d in others if d["cost"] < chosen["cost"]]
    if cheaper and found[0]["cost"] >= chosen["cost"]:
        found.append(max(cheaper, key=nearness))
    return [
        {
            "name": d["name"],
            "cost": d["cost"],
            "difference": d["cost"] - chosen["cost"],
            "probability": d["probability"],
            "why": _why_lost(answer, d, chosen),
        }
        for d in found
    ]


def _why_lost(answer: StudyDocument, design: DesignDocument, chosen: DesignDocument) -> str:
    if design["first_failing"] and not design["meets"]:
        return _misses(answer, design)
    if not design["meets"]:
        return "Only screened by the analytic solver: dearer, and not needed."
    if not is_priced(answer):
        return "Keeps all levels, with less to spare or later in the order of designs."
    if design["cost"] > chosen["cost"]:
        return "Keeps all levels, and costs more."
    return "Keeps all levels, and costs the same."


def _what(answer: StudyDocument) -> str:
    if not answer["decision"]:
        return ""
    d = answer["decision"]
    swapped = _swapped(answer)
    values = ", ".join(
        f"{axis}: {value}"
        + (
            f" (another system: the platform {quoted(swapped[axis][value])})"
            if swapped.get(axis, {}).get(value)
            else ""
        )
        for axis, value in d["values"].items()
    )
    words = f"{values[0].upper()}{values[1:]}."
    if d["cost"]:
        running = d["cost"] - d["price"]
        words += f" It costs {money(d['price'], answer['currency'])} to buy"
        words += (
            f" and {money(running, answer['currency'])} of electricity in {answer['years']:g} years."
            if running
            else "."
        )
    return words


def _swapped(answer: StudyDocument) -> dict[str, dict[str, str]]:
    """By axis and value the platform, where a value is a whole other system."""
    return {
        axis["name"]: {v["name"]: v["platform"] for v in axis["values"] if v["platform"]}
        for axis in answer.get("axes", [])
    }


def _nearest(answer: StudyDocument) -> str:
    """Without a decision: what the nearest miss misses, and the limits that it would keep."""
    miss, design = answer["nearest_miss"], reference(answer)
    if not miss or design is None:
        return ""
    kept = kept_with(answer, miss["probability"])
    start = f"{quoted(miss['name'])}{_for(answer, miss)} keeps all levels with {kept}."
    return f"{start} {_misses(answer, design)} {_would_do(miss)}{_as_near(answer, design)}"


def _as_near(answer: StudyDocument, nearest: DesignDocument) -> str:
    """Designs that miss their tightest level by so little more than the nearest that no model tells them apart."""

    def missed(design: DesignDocument) -> float:
        return min((row["margin"] or 0.0 for row in design["levels"]), default=0.0)

    alike = [
        f"{quoted(one['name'])}{_for(answer, one)} ({100 * (missed(nearest) / missed(one) - 1):.0f} % farther off)"
        for one in answer["designs"]
        if one["id"] != nearest["id"] and one["basis"] == "simulated" and missed(one) * AS_NEAR >= missed(nearest) > 0
    ]
    if not alike:
        return ""
    which = "which comes" if len(alike) == 1 else "which come"
    return f" No model tells it from {', '.join(alike[:3])}{' and others' * (len(alike) > 3)}, {which} as near."


def _cheaper(answer: StudyDocument) -> str:
    """Of the cheaper designs the nearest: what it saves, what it misses, and the limits that it would keep."""
    if not answer["decision"] or not is_priced(answer):
        return ""
    cost = answer["decision"]["cost"]
    cheaper = [d for d in answer["designs"] if d["cost"] < cost and d["basis"] != "beyond limits"]
    if not cheaper:
        return "No design within the limits costs less."
    design = max(cheaper, key=nearness)
    others = f"Of {len(cheaper)} cheaper designs {quoted(design['name'])} comes nearest"
    who = others if len(cheaper) > 1 else f"The only cheaper design is {quoted(design['name'])}"
    screened = design["basis"] == "screened"
    probability = kept_with(answer, design["probability"])
    kept = f"{'at most ' * screened}{probability}{' by the analytic solver alone' * screened}"
    required = f"{100 * answer['confidence_asked']:g} % are required"
    words = (
        f"{who}: it would save {money(cost - design['cost'], answer['currency'])}, and keeps all levels with {kept} "
        f"where {required}."
    )
    relaxed = next((one for one in answer["relaxations"] if one["design"] == design["id"]), None)
    small = relaxed and all(
        max(n["needed"] / n["limit"], n["limit"] / n["needed"]) < SMALL_CHANGE for n in relaxed["needed"]
    )
    return f"{words} {_misses(answer, design)}" + (f" {_would_do(relaxed)}" if relaxed and small else "")


def _would_do(design: NearestMiss | Relaxation) -> str:
    """The limits with which a design would keep all levels, of a nearest miss or a relaxation."""
    if not design["needed"] or any(n["down"] for n in design["needed"]):
        return "No change of the limits alone would do."
    return f"It would do with {' and '.join(_needs(n) for n in design['needed'])}."


def _misses(answer: StudyDocument, design: DesignDocument) -> str:
    """The levels that a design keeps with too little probability, the least likely first, each where it is tightest and
    by how much; and why the first of them fails."""
    chances = [(row["probability"], row) for row in tightest(design["levels"])]
    known = sorted(((p, row) for p, row in chances if p is not None), key=lambda one: one[0])
    short = [one for one in known if one[0] < answer["confidence_asked"]] or known[:1]
    words = [_misses_one(answer, row) for _, row in short[:MAX_MISSED]]
    more = len(short) - len(words)
    listed = "; ".join(words) + (f"; and {more} more level{'s' * (more > 1)}" if more else "")
    failing = design["first_failing"]
    if failing is None:
        return "Only the analytic solver looked at it."
    under = f" with {failing['under']}" if failing["under"] else ""
    return f"It {listed}. At {failing['ranks']:,} clients{under} {_because(failing)}"


def _misses_one(answer: StudyDocument, row: LevelRow) -> str:
    level = row["level"].removesuffix(f" with {row['under']}")
    where, value, limit = place(row, answer), row["value"], row["limit"]
    if value is None:
        return f"does not serve {where} ({level})"
    reported = amount(row["quantity"], value)
    if is_kept(row):  # it may go either way, and goes wrong too often
        kept = kept_with(answer, row["probability"])
        return f"keeps {level} with {kept} only {where} (best estimate {reported}, {margin(row)})"
    times = max(value / limit, limit / value) if value else math.inf
    size = percent_off(value, limit) if times < 2 else f"a factor of {times:.2g}"
    return f"misses {level} by {size} {where} ({reported})"


def _needs(needed: Needed) -> str:
    return (
        f"{level_name(needed)} at {amount(needed['quantity'], needed['needed'])} instead of "
        f"{amount(needed['quantity'], needed['limit'])}"
    )


def level_name(needed: Needed) -> str:
    """The level without its limit: "p99(create)"."""
    name = str(needed["level"])
    for sign in ("<=", ">=", "<", ">"):
        name = name.partition(f" {sign}")[0]
    return name


def _because(failing: Failing) -> str:
    why = failing["why"]
    if why is None:
        return "the analytic solver does not say where the time goes."
    if why["part"] == "down":
        return "nothing is left that could serve."
    if why["part"] == "limit":
        return limited(why)
    share = 100 * (why["share"] or 0.0)
    if why["part"] == "utilisation":
        return f"{why['station']} is in use {share:.0f} % of the time."
    if why["station"] == Elsewhere.CLIENTS.value:
        return f"{share:.0f} % of the time goes to waiting behind the clients' own limits, to the network and to disks."
    if failing["value"] is not None and share:
        return f"{share:.0f} % of the time goes to {_PARTS[why['part']]} at {why['station']}."
    return f"the time goes to {why['station']}."


def limited(why: Why) -> str:
    """What limits the rate, for the middle of a sentence."""
    text: str = why["text"]
    if why.get("limited_by"):
        return f"the rate is limited by {text[len(LEAD) :]}"
    return f"{text[:1].lower()}{text[1:]}"


def _levels(answer: StudyDocument) -> str:
    rows = sorted(((share, r) for r in answer["levels"] if (share := r["rules_out"])), key=lambda one: -one[0])
    if not rows:
        return "Every design within the limits keeps every level."
    words = [
        f"{r['level']} rules out {100 * share:.0f} % of the designs"
        + (f" ({100 * alone:.0f} % by itself alone)" if (alone := r["alone"]) else "")
        for share, r in rows[:3]
    ]
    return "; ".join(words) + "."


def _ends(answer: StudyDocument) -> str:
    design = reference(answer)
    end = design["breaks_at"] if design else None
    if not end:
        return ""
    unsolved = end.get("unsolved") or []
    only = f" The analytic solver doesn't know {' and '.join(unsolved)}, looked at in simulations alone."
    if end["ranks"] is None:
        far = only if unsolved else " Beyond the study's scales this is the analytic solver's word alone."
        return f"No level is missed up to {end['beyond']:,} clients{placed(end)}, as far as was looked.{far}"
    if end.get("already"):  # files of earlier versions don't know
        fewer = "" if end["ranks"] == 1 else " Whether fewer keep it was not looked at."
        return f"{end['level']} is missed at {end['ranks']:,} clients, the fewest that were looked at for it.{fewer}"
    largest = answer["scales"][-1]["ranks"]
    times = end["ranks"] / largest
    where = (
        f"{times:.1f} times the largest scale of the study"
        if times > 1.5
        else f"{100 * (times - 1):.0f} % beyond the largest scale of the study"
        if times > 1
        else "within the scales of the study"
    )
    return (
        f"The best estimate is that it breaks at about {break_count(answer, end['ranks']):,} clients{placed(end)}, "
        f"{where}, where {end['level']} is missed first.{only * bool(unsolved)}"
    )


def placed(end: Breaks) -> str:
    """How further clients come: on the nodes of the largest scale, or with nodes; "" in files of earlier versions."""
    if nodes := end.get("nodes"):
        return f" on {nodes:,} node{'s' * (nodes > 1)}"
    if each := end.get("ranks_per_node"):
        return f", {each:,} a node"
    return ""


def break_count(answer: StudyDocument, ranks: int) -> int:
    """The clients at which a design breaks, with as few digits as leave it on its side of every scale of the study, at
    least two."""
    scales = [scale["ranks"] for scale in answer["scales"]]
    for digits in range(2, len(str(ranks)) + 1):
        rounded = int(round(ranks, digits - len(str(ranks))))
        if all((rounded > scale) == (ranks > scale) for scale in scales):
            return rounded
    return ranks


def _changes(answer: StudyDocument) -> str:
    return " ".join(changes(answer))


def changes(answer: StudyDocument) -> list[str]:
    """What would change the decision, a sentence each: a price, the required confidence, an uncertain input, a
    measurement."""
    words = []
    if answer["decision"]:
        dearer = [
            d
            for d in answer["designs"]
            if d["meets"] and d["id"] != answer["decision"]["id"] and d["cost"] >= answer["decision"]["cost"]
        ]
        if dearer:
            gap = dearer[0]["cost"] - answer["decision"]["cost"]
            costs = ""
            if is_priced(answer):
                costs = f" and costs {money(gap, answer['currency'])} more" if gap else " and costs the same"
                if gap and answer["decision"]["cost"]:  # nothing gets cheaper than free
                    costs += ": if prices move by that much, it is the cheaper choice"
            words.append(f"{quoted(dearer[0]['name'])} also keeps all levels{costs}.")
        at = {o["confidence"]: o for o in answer["other_confidences"]}
        lower = next(
            (
                at[c]
                for c in (0.5, 0.8)
                if c < answer["confidence_asked"] and at[c]["design"] not in (None, answer["decision"]["id"])
            ),
            None,
        )
        if lower and is_confident(answer):
            kept, name = next((d["probability"], d["name"]) for d in answer["designs"] if d["id"] == lower["design"])
            words.append(
                f"Where {chance(kept or 0.0)} confidence is enough, {quoted(name)}{_for(answer, lower)} would do."
            )
        higher = next(
            (
                at[c]
                for c in (0.95, 0.99)
                if c > answer["confidence_asked"] and at[c]["design"] != answer["decision"]["id"]
            ),
            None,
        )
        if higher and is_confident(answer):
            instead = f"{quoted(other)}{_for(answer, higher)}" if (other := higher["name"]) else "none of the designs"
            words.append(f"For {100 * higher['confidence']:.0f} % confidence the answer would be {instead}.")
    uncertain = answer["sensitivity"]["uncertain"]
    turning = sorted(((turn, u) for u in uncertain if (turn := u["turns_at"])), key=lambda one: abs(math.log(one[0])))
    for times, u in turning[:MAX_TURNING]:
        side = "missed" if is_kept_now(answer, u) else "kept"
        known = f" (known to within a factor of {u['factor']:.2g})" if u.get("factor") else ""
        words.append(f"{quoted(u['name'])} at {times:.2g} times the assumed value{known}: {u['level']} is {side}.")
    if uncertain and not turning:
        words.append("No uncertain input turns the decision by itself, even four standard deviations off.")
    best = max(answer["measurements"], key=lambda m: m["value"], default=None)
    if best and round(best["value"]) > 0 and is_priced(answer):
        words.append(
            f"Knowing more could turn it all the same ({best['name']}): that is worth up to "
            f"{money(best['value'], answer['currency'])} on average."
        )
    return words


def _for(answer: StudyDocument, design: DesignDocument | NearestMiss | OtherConfidence) -> str:
    """ " for 5,000 EUR", where anything has a price."""
    return f" for {money(design['cost'] or 0.0, answer['currency'])}" if is_priced(answer) else ""


def _matters(answer: StudyDocument) -> str:
    words = []
    choices = [a for a in answer["sensitivity"]["axes"] if len(a["values"]) > 1]
    ranked = sorted(choices, key=lambda a: -a["shares"]["worst margin"])
    if len(choices) > 1 and ranked[0]["shares"]["worst margin"] > 0.05:  # of a single axis all differences come
        shares = ", ".join(
            f"{quoted(a['axis'])} {100 * a['shares']['worst margin']:.0f} %"
            for a in ranked[:2]
            if a["shares"]["worst margin"] > 0.05
        )
        words.append(
            "Share of the differences between designs, in the margin of their worst level, that an axis explains by "
            f"itself: {shares}."
        )
    for axis, values in _swapped(answer).items():
        if values:
            others = ", ".join(f"{quoted(value)} the platform {quoted(platform)}" for value, platform in values.items())
            words.append(
                f"Values of the axis {quoted(axis)} swap the whole system ({others}): such designs differ in "
                "everything, and each system's model has an error of its own."
            )
    uncertain = answer["sensitivity"]["uncertain"]
    if uncertain and abs(math.log(uncertain[0]["effect"])) > 0.005:
        u = uncertain[0]
        words.append(
            f"The uncertain number with the largest effect is {u['name']}: known to a factor of {u['factor']:.2g}, one "
            f"standard deviation of it changes {level_name({'level': u['level']})} by {100 * (u['effect'] - 1):+.0f} %."
        )
    return " ".join(words)


def _measure(answer: StudyDocument) -> str:
    paying = [(price, m) for m in answer["measurements"] if (price := m["price"]) is not None]
    if paying:
        price, best = paying[0]
        if (best["net"] or 0.0) > 0:
            return (
                f"{quoted(best['name'])} is worth its price: it costs {money(price, answer['currency'])} and "
                f"saves {money(best['value'], answer['currency'])} on average, by choosing better with its result."
            )
        return (
            f"None of the measurements offered is worth its price: the best, {quoted(best['name'])}, costs "
            f"{money(price, answer['currency'])} and would save {money(best['value'], answer['currency'])} on "
            "average."
        )
    if not answer["measurements"] or not (is_priced(answer) or answer["study"].get("falling_short")):
        return ""
    known = [m for m in answer["measurements"] if round(m["value"]) > 0]
    if known:
        return (
            f"The most valuable measurement would be of {known[0]['name']}: it would be worth up to "
            f"{money(known[0]['value'], answer['currency'])}."
        )
    return "Nothing uncertain here could change the choice enough to be worth measuring."


def _found(answer: StudyDocument) -> str:
    s = answer["search"]
    words = f"Of {s['designs']:,} designs {s['within_limits']:,} within the limits were screened by the analytic solver"
    if s["explored"] != "full factorial":
        words = f"Of {s['designs']:,} designs {s['explored']} looked at {s['looked_at']:,}"
    same = "the decision is the same" if answer["decision"] else "there is no decision either"
    words += (
        f" and {s['simulated']:,} simulated, with up to {s['replications']} replications; in "
        f"{100 * answer['stability']:.0f} % of resampled replications {same}."
    )
    stated = answer.get("model_error")
    if stated:
        factors = ", ".join(f"{factor:.3g} for {kind}" for kind, factor in stated["factors"].items())
        words += (
            f" The model's own error is the study's: within a factor of {factors} in 90 of 100 cases "
            f"({stated['source'].rstrip('.')})."
        )
    holdout = answer["platform"].get("holdout") or {}
    rate = next((r for r in holdout.get("rows", []) if r["quantity"] == "rate"), None)
    if rate and is_confident(answer):
        words += (
            f" The calibration forecast its largest measured scale, {holdout['ranks']} ranks, without having seen it, "
            f"and was wrong by {100 * rate['error']:+.0f} % in throughput."
        )
    return words
