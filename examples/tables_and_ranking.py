"""Which hash-table setting matches which radius?  Figure 3.5 of the methodology, with data.

    python examples/tables_and_ranking.py [IMAGE.svg]

Hashes scikit-learn's digits to 32 bits, looks up every query in L tables of K bits for a grid of
settings, and compares each with the Hamming ranking cut at the radius that retrieves as many items.
"""

import sys

import bittern as bt
from bittern.report import draw_tables
from bittern.tables import RankingComparison, compare_with_ranking

K_GRID, L_GRID = (2, 4, 8, 16, 32), (1, 2, 4, 8, 16)


def main(image: str | None) -> None:
    """Print a row for each setting, and draw them on the precision-recall curve."""
    dataset = bt.load("digits")
    split = bt.make_split("improved", dataset, random_state=0, run=0)
    train, queries, database = (
        dataset.take(rows) for rows in (split.train, split.queries, split.database)
    )
    hasher = bt.hashing.ITQ(n_bits=32, random_state=0).fit(train.vectors[:])
    codes = hasher.encode(queries.vectors), hasher.encode(database.vectors)
    truth = bt.Relevance.from_classes(queries.labels, database.labels)

    surface = bt.table_surface(*codes, truth, bits_per_table=K_GRID, n_tables=L_GRID)
    comparison = compare_with_ranking(surface, bt.TieProfile.from_codes(*codes, truth))
    show(comparison)
    if image is not None:
        draw_tables(image, comparison, "Digits, ITQ, 32 bits; numbers at points are L")


def show(comparison: RankingComparison) -> None:
    """Print one row for each possible setting."""
    surface = comparison.surface
    print(" K   L   radius (certain … farthest)   precision  ranking   recall  ranking   empty")
    for k, width in enumerate(surface.bits_per_table):
        for j, n_tables in enumerate(surface.n_tables):
            if surface.is_possible[k, j]:
                bounds = f"({comparison.certain_radius[k, j]} … {comparison.farthest[k, j]})"
                print(
                    f"{width:2}  {n_tables:2}   {comparison.radius[k, j]:6} {bounds:22}"
                    f"{surface.precision[k, j]:9.3f} {comparison.precision[k, j]:8.3f} "
                    f"{surface.recall[k, j]:8.3f} {comparison.recall[k, j]:8.3f} "
                    f"{surface.n_empty[k, j]:7}"
                )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
