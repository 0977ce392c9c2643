"""The public names of the stage, listed once; each loads when it is first used."""

from .choices import choices_to_text as choices_to_text
from .differences import differences_to_markdown as differences_to_markdown
from .differences import differences_to_text as differences_to_text
from .figures import to_svg as to_svg
from .figures import write_figures as write_figures
from .formats import REPORTS as REPORTS
from .formats import to_csv as to_csv
from .latex import to_latex as to_latex
from .markdown import to_markdown as to_markdown
from .page import page_of as page_of
from .page import write_page as write_page
from .plots import draw_advice as draw_advice
from .plots import draw_pr_curves as draw_pr_curves
from .plots import draw_tables as draw_tables
from .plots import draw_tie_spread as draw_tie_spread
from .results_table import to_text as to_text
from .sentences import in_words as in_words
