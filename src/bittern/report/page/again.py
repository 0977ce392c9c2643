"""The last section: everything needed to run the experiment again."""

from __future__ import annotations

import json
from typing import Any

from bittern.experiments.records import PROTOCOL
from bittern.io.toml import to_toml
from bittern.report.markup import Html, fragment
from bittern.report.page.parts import bits_of, folded, section, table
from bittern.report.page.view import View

__all__ = ["run_again"]

COMMANDS = """bittern run protocol.toml --out results
bittern verify results
bittern report results --html report.html"""


def run_again(view: View) -> Html:
    """The protocol, the commands, the versions and the fingerprints of cells."""
    protocol = view.records.protocol
    return section(
        "Run it again",
        "again",
        Html.tag(
            "p",
            "Save the protocol below as ",
            Html.tag("code", "protocol.toml"),
            "; the same protocol gives the same values. ",
            Html.tag("code", "verify"),
            " measures a random cell anew and compares.",
        ),
        Html.tag("pre", Html.tag("code", COMMANDS)),
        folded("The protocol", Html.tag("pre", Html.tag("code", _protocol_text(view)))),
        folded("Versions", _versions(view)),
        folded(f"Fingerprints of {len(view.records)} cells", _cells(view)),
        Html.tag("p", "Fingerprint of the protocol: ", Html.tag("code", protocol.fingerprint), "."),
    )


def _protocol_text(view: View) -> str:
    """The file as it was written, with its comments; from the values if there is none."""
    folder = view.records.folder
    if folder is not None and (folder / PROTOCOL).is_file():
        return (folder / PROTOCOL).read_text(encoding="utf-8")
    return to_toml(view.records.protocol.to_dict())


def _versions(view: View) -> Html:
    """Each set of versions once: a folder may have been filled by several."""
    found = list(
        {json.dumps(r.versions, sort_keys=True): r.versions for r in view.records}.values()
    )
    names = list(dict.fromkeys(name for versions in found for name in versions))
    rows = [(name, *(versions.get(name, "–") for versions in found)) for name in names]
    header = [
        "",
        *(["version"] if len(found) == 1 else [f"set {i + 1}" for i in range(len(found))]),
    ]
    return fragment(table("What the records were made with", header, rows, class_="words"))


def _cells(view: View) -> Html:
    rows = [
        (r.method, bits_of(r.n_bits), str(r.run), Html.tag("code", r.fingerprint), _chosen(r))
        for r in view.records
    ]
    header = ["method", "length", "run", "fingerprint", "chosen on validation data"]
    return table("Cells", header, rows, class_="words")


def _chosen(record: Any) -> str:
    if not record.tuning:
        return "–"
    tried = {key for one in record.tuning for key in one["parameters"]}
    return ", ".join(f"{k} = {v}" for k, v in record.parameters.items() if k in tried)
