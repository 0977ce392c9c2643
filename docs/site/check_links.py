"""Check the links of a built site: each leads to a file that is there, and to an anchor in it."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.error import URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

SECONDS = 20


@dataclass
class Page(HTMLParser):
    """The links of a page, what it loads, and the anchors that others may link to."""

    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)  # scripts, styles and images
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note what the tag links to, and how it can be linked to."""
        for name, value in attributes:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                (self.links if tag == "a" else self.loaded).append(value)


def read_page(path: Path) -> Page:
    """The links and anchors of a file."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def broken_links(site: Path) -> list[str]:
    """A sentence for each link inside the site that leads nowhere, and for what is not in the site.

    The site must work without a network: a page may link to another site, and load nothing from it.
    """
    pages = {path.resolve(): read_page(path) for path in sorted(site.rglob("*.html"))}
    problems = []
    for path, page in pages.items():
        for link in dict.fromkeys((*page.links, *page.loaded)):
            if problem := _problem(link, path, pages):
                problems.append(f"{path.relative_to(site.resolve())}: {problem}.")
    return problems


def _problem(link: str, path: Path, pages: dict[Path, Page]) -> str | None:
    parts = urlsplit(link)
    if parts.scheme == "data":
        return None
    if parts.scheme or parts.netloc:
        return f"loads {link} from another site" if link in pages[path].loaded else None
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.exists():
        return f"{link} leads nowhere"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
        return f"{link} has no anchor"
    return None


def dead_addresses(site: Path) -> list[str]:
    """A sentence for each address of another site that does not answer."""
    addresses = {
        link
        for path in site.rglob("*.html")
        for link in read_page(path).links
        if urlsplit(link).scheme in ("http", "https")
    }
    return [problem for address in sorted(addresses) if (problem := _try(address))]


def _try(address: str) -> str | None:
    request = Request(address, headers={"User-Agent": "Mozilla/5.0"})
    try:
        urlopen(request, timeout=SECONDS).close()
    except (URLError, TimeoutError, ValueError) as error:
        return f"{address} does not answer ({error})."
    return None
