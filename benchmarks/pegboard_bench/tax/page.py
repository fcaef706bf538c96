"""The section of `tax.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from textwrap import fill
from typing import Any

from pegboard_bench.results import measured
from pegboard_bench.tax import frontier, texts
from pegboard_bench.tax.ablations import VARIANTS
from pegboard_bench.tax.conclusions import claims, conclusions, of_poison
from pegboard_bench.tax.equations import C_SYS, C_TASK
from pegboard_bench.tax.failures import CLASSES
from pegboard_bench.tax.methods import OWN
from pegboard_bench.tax.methods import title as title_of
from pegboard_bench.tax.plan import LARGEST, PARTS
from pegboard_bench.tax.projection import SEED_TABLE_3, SEED_TABLE_4, SEED_TABLE_5
from pegboard_bench.tax.rows import TALK

WIDTH = 120
EXACT = "attention_minilm"
"""The row that the paper's own figures stand beside, where it was measured."""


def section(results: Mapping[str, Any]) -> str:
    tables = results["tables"]
    parts = [
        "## The tools tax\n\n",
        _wrapped(
            texts.INTRODUCTION.format(
                measured=measured(results), tasks=tables["plan"]["tasks"], seeds=_of_seeds(len(tables["plan"]["seeds"]))
            )
        ),
        f"\n\n{_missing(tables)}\n\n",
        "### What to conclude\n\n",
        _listed(conclusions(tables)),
        texts.HOW.format(talk=TALK, c_task=C_TASK, c_sys=C_SYS),
        *(_bed(bed, tables) for bed in tables["methods"]),
        texts.PICTURES + "\n",
        texts.CLAIMS.format(points=_listed(claims(tables)).strip()),
        _servers(tables),
        _quality(tables),
        _ablations(tables),
        _scaling(tables),
        _frontier(tables),
        _poisoned(tables),
        _failures(tables),
    ]
    return "".join(parts).rstrip() + "\n"


def _of_seeds(count: int) -> str:
    return "one seed" if count == 1 else f"{count} seeds"


def _missing(tables: Mapping[str, Any]) -> str:
    plan, missing = tables["plan"], []
    if "real120" not in plan["beds"]:
        missing.append("real120")
    curves = [name for name in frontier.SETS if name not in plan["sets"]]
    if curves:
        missing.append(f"recall against tokens on {', '.join(curves)}")
    if not plan["untuned"]:
        missing.append("MiniLM as published (`--untuned`)")
    if not plan.get("mpnet"):
        missing.append("MPNet (`--mpnet`)")
    if not plan["peers"]:
        missing.append("peers (`--peers`)")
    if "bm25" not in plan.get("rankers", frontier.RANKERS):
        missing.append("bm25s (`pip install 'pegboard[bench]'`)")
    if plan["largest"] < LARGEST:
        missing.append(f"catalogs of more than {plan['largest']:,} tools")
    missing += [part for part in PARTS if part not in plan["parts"]]
    missing += [f"{peer} ({why})" for of in tables["peers_missing"].values() for peer, why in of.items()]
    if plan["jobs_done"] < plan["jobs"]:
        missing.append(
            f"{plan['jobs'] - plan['jobs_done']} of {plan['jobs']} jobs, which this run was ended before (what the "
            "tables do not have; `make bench` goes on with them)"
        )
    return _wrapped(f"Not measured in this run: {', '.join(dict.fromkeys(missing)) or 'nothing'}.")


def _wrapped(text: str, indent: str = "") -> str:
    return fill(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def _listed(sentences: Sequence[str]) -> str:
    return "\n".join(_wrapped(f"- {sentence}", "  ") for sentence in sentences) + "\n\n"


def _bed(bed: str, tables: Mapping[str, Any]) -> str:
    about, methods = tables["catalogs"][bed], tables["methods"][bed]
    head = f"### {bed}: {about['tools']} tools, {about['tokens']:,} tokens\n\n{texts.METHODS_HEAD}\n{texts.RULE}\n"
    rows = [_row(title_of(name), of, _seeds(name, bed, methods)) for name, of in methods.items()]
    made = head + "\n".join(rows) + "\n\n"
    peers = tables["peers"].get(bed)
    if peers:
        made += texts.PEERS.format(tasks=_tasks(peers))
        made += "| | first | steady | sent | recall |\n|---|---|---|---|---|\n"
        ours = {title_of(name): of for name, of in tables.get("beside_peers", {}).get(bed, {}).items()}
        made += "\n".join(
            f"| {name} | {of['first'][0]:,.0f} | {of['steady'][0]:,.0f} | {of['sent'][0]:,.0f} | "
            f"{_share(of['recall'])} |"
            for name, of in sorted((ours | peers).items(), key=lambda each: -each[1]["recall"][0])
        )
        made += "\n\n"
    return made


def _tasks(peers: Mapping[str, Any]) -> int:
    return max(int(of.get("count", 0)) for of in peers.values())


def _seeds(name: str, bed: str, methods: Mapping[str, Any]) -> tuple[float, ...] | None:
    """The paper's row that belongs to this one."""
    if not bed.startswith("synthetic"):
        return None
    if name in ("attention", EXACT):
        return SEED_TABLE_3["attention"] if name == (EXACT if EXACT in methods else "attention") else None
    return SEED_TABLE_3.get(name)


def _row(title: str, of: Mapping[str, Any], seed: tuple[float, ...] | None) -> str:
    made = of.get("projected")
    cells = [
        title,
        _tokens(of["first"]),
        _tokens(of["steady"]) + (f" ({seed[0]:,.0f})" if seed else ""),
        f"{of['sent'][0]:,.0f}",
        f"{of['billed'][0]:,.0f}",
        f"{of['requests'][0]:.2f}",
        _share(of["recall"]),
        f"{of['f1'][0]:.2f}",
        f"{of['complete'][0]:.2f}",
        f"{of['rho_t30'][0]:.2f}" + (f" ({seed[1]:.2f})" if seed else "") if "rho_t30" in of else "",
    ]
    if made:
        own = [made["success"], made["p50"], made["p95"], made["usd"]]
        forms = (".2f", ".1f", ".1f", ".3f")
        cells += [
            format(value, form) + (f" ({format(theirs, form)})" if seed else "")
            for value, form, theirs in zip(own, forms, seed[2:] if seed else (0.0,) * 4, strict=True)
        ]
    else:
        cells += [""] * 4
    return f"| {' | '.join(cells)} |"


def _tokens(interval: Sequence[float]) -> str:
    mean, low, high = interval
    return f"{mean:,.0f}" if high - low < 1 else f"{mean:,.0f} [{low:,.0f}, {high:,.0f}]"


def _share(interval: Sequence[float]) -> str:
    mean, low, high = interval
    return f"{mean:.3f}" if high - low < 0.0005 else f"{mean:.3f} [{low:.3f}, {high:.3f}]"


def _servers(tables: Mapping[str, Any]) -> str:
    rows = [
        f"| {server} ({bed}) | {of['tools']} | {of['tokens']:,} | {of['share']:.2%} | {of['name']:,} | "
        f"{of['description']:,} | {of['schema']:,} | {of['output']:,} |"
        for bed, about in tables["catalogs"].items()
        if bed != "synthetic_47k"
        for server, of in about["servers"].items()
    ]
    others = [
        f"`{name}`, recorded by others: {of['tools']:,} tools of {of['servers']} servers, {of['tokens']:,} tokens; a "
        f"server has {of['server_quartiles'][1]:,} in the median, {of['server_quartiles'][2]:,} at the upper quartile "
        f"and {of['server_quartiles'][3]:,} at most."
        for name, of in tables["recorded_by_others"].items()
    ]
    return texts.SERVERS.format(rows="\n".join(rows), others=_listed(others) if others else "")


def _quality(tables: Mapping[str, Any]) -> str:
    methods = tables["methods"].get("synthetic", {})
    rows = []
    for name, of in methods.items():
        if "projected" in of:
            seed = SEED_TABLE_4.get(name)
            theirs = (f" ({seed[0]:.2f})", f" ({seed[1]:.1%})") if seed else ("", "")
            made = of["projected"]
            rows.append(f"| {title_of(name)} | {made['quality']:.2f}{theirs[0]} | {made['good']:.1%}{theirs[1]} |")
    return texts.QUALITY.format(rows="\n".join(rows)) if rows else ""


def _ablations(tables: Mapping[str, Any]) -> str:
    beds = list(tables["ablations"])
    if not any(tables["ablations"].values()):
        return ""
    heads = " | ".join(f"{bed}: tokens | recall | barred | success†" for bed in beds) + " | paper: tokens | success†"
    variants: dict[str, str] = {"attention": "Tool Attention (`attention`)", EXACT: title_of(EXACT)}
    variants |= {name: title for name, (title, _) in VARIANTS.items()}
    rows = []
    for variant, title in variants.items():
        cells = []
        for bed in beds:
            of = tables["ablations"][bed].get(variant) or tables["methods"][bed].get(variant)
            cells += ["", "", "", ""] if of is None else _ablated(of)
        seed = SEED_TABLE_5.get(variant)
        cells += [f"{seed[0]:,}", f"{seed[1]:.3f}"] if seed else ["", ""]
        rows.append(f"| {title} | {' | '.join(cells)} |")
    return texts.ABLATIONS.format(heads=heads, rules="---|" * (4 * len(beds) + 1) + "---", rows="\n".join(rows))


def _ablated(of: Mapping[str, Any]) -> list[str]:
    success = f"{of['projected']['success']:.3f}" if "projected" in of else ""
    return [f"{of['phase2'][0]:,.0f}", _share(of["recall"]), f"{of['barred'][0]:.2f}", success]


def _scaling(tables: Mapping[str, Any]) -> str:
    scaling = tables["scaling"]
    if not scaling:
        return ""
    sizes = sorted({int(name.split("/")[1]) for name in scaling})
    methods = list(dict.fromkeys(name.split("/")[0] for name in scaling))
    rows = [
        f"| {title_of(method)} | "
        + " | ".join(
            f"{scaling[f'{method}/{size}']['tokens']:,.0f}" if f"{method}/{size}" in scaling else "–" for size in sizes
        )
        + " |"
        for method in sorted(methods, key=lambda name: list(OWN).index(name) if name in OWN else len(OWN))
    ]
    head = f"| | {' | '.join(f'{size:,}' for size in sizes)} |\n|---|{'---|' * len(sizes)}\n"
    return texts.SCALING.format(table=head + "\n".join(rows))


def _frontier(tables: Mapping[str, Any]) -> str:
    compared = tables["compared"]
    if not compared:
        return ""
    rows, behind, ahead = [], [], 0
    for name, tokens in product(dict.fromkeys(row["set"] for row in compared), frontier.TOKENS):
        here = [row for row in compared if row["set"] == name and row["tokens"] == tokens]
        ours = next(row for row in here if row["method"] == frontier.OURS)
        others = sorted(
            (row for row in here if not row["method"].startswith(frontier.OURS)), key=lambda row: row["gain"]
        )
        best = others[0]
        rows.append(
            f"| {name} | {tokens:,} | {ours['recall']:.3f} | {best['method']} {best['recall']:.3f} | {_gain(best)} |"
        )
        behind += [f"{row['method']} on {name} at {tokens:,} ({_gain(row)})" for row in others if row["gain"] < 0]
        ahead += best["low"] > 0
    verdict = (
        f"Of {len(rows)} places, Pegboard is ahead of every other method beyond doubt in {ahead}. Ahead of it "
        f"{'is none' if not behind else 'are ' + '; '.join(behind)}. `attention` and `semantic` are profiles of "
        "Pegboard's too, with its tuned encoder."
    )
    return texts.FRONTIER.format(rows="\n".join(rows), verdict=_wrapped(verdict))


def _gain(row: Mapping[str, Any]) -> str:
    return f"{row['gain']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]"


def _poisoned(tables: Mapping[str, Any]) -> str:
    keys = [name.split("/") for name in tables["poisoned"]]
    if not keys:
        return ""
    columns = list(dict.fromkeys((bed, kind) for bed, _, kind in keys))
    rows = []
    for method in dict.fromkeys(method for _, method, _ in keys):
        cells = []
        for bed, kind in columns:
            of = tables["poisoned"].get(f"{bed}/{method}/{kind}")
            cells.append(f"{of['full']:.2f} / {of['reached']:.2f}" if of else "–")
        rows.append(f"| {title_of(method)} | {' | '.join(cells)} |")
    heads = " | ".join(f"{bed}, {kind}" for bed, kind in columns)
    rules = "---|" * (len(columns) - 1) + "---"
    return texts.POISONED.format(heads=heads, rules=rules, rows="\n".join(rows), words=_wrapped(of_poison(tables)))


def _failures(tables: Mapping[str, Any]) -> str:
    failures = tables["failures"]
    if not failures:
        return ""
    rows = [
        f"| {title} | "
        + " | ".join(f"{of['classes'].get(name, 0) / of['steps']:.3f}" for of in failures.values())
        + " |"
        for name, title in CLASSES.items()
    ]
    heads = " | ".join(f"{name.replace('/', ', ')}" for name in failures)
    return texts.FAILURES.format(heads=heads, rules="---|" * (len(failures) - 1) + "---", rows="\n".join(rows))
