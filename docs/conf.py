"""How Sphinx builds the site: `make docs`. docs/decisions/0014-the-site.md says why these tools."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT / "tools"))

import check_layers  # noqa: E402

import jali  # noqa: E402

project = "Jali"
author = "The Jali authors"
release = version = jali.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # MathJax and its fonts, copied into the site
    "sphinx_design",
    "sphinx_copybutton",
    "sphinxcontrib.programoutput",
    "breathe",
]
root_doc = "index"
exclude_patterns = ["README.md", "_templates"]
templates_path = ["_templates"]
nitpicky = False

# --- pages ----------------------------------------------------------------------------------------
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
myst_dmath_allow_labels = False
suppress_warnings = [
    "duplicate_declaration.cpp",  # every header declares the namespace jali
]

# --- the Python reference -------------------------------------------------------------------------
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False  # a module's page has what its __all__ has
toc_object_entries_show_parents = "hide"
python_use_unqualified_type_names = True
autodoc_typehints = "signature"
autodoc_member_order = "groupwise"
python_maximum_signature_line_length = 88


def plain_signature(
    app: Any,
    what: str,
    name: str,
    thing: Any,
    options: Any,
    signature: str | None,
    result: str | None,
) -> tuple[str | None, str | None]:
    """Signatures as they are called: without self and the paths of types."""

    def short(text: str | None) -> str | None:
        if text is None:
            return None
        text = re.sub(r"\(self(?:, /)?(?:, )?", "(", text, count=1)
        return re.sub(
            r"\b(?:collections\.abc|numpy\.typing|typing|jali\._jali|numpy(?!\.dtype))\.", "", text
        )

    return short(signature), short(result)


FIELD = re.compile(r"^(?P<name>\w+(?:, \w+)*): (?P<text>.*)$")


SPECIAL = re.compile(r"\*|\||(?<=\w)_(?!\w)")  # what would be emphasis, a substitution or a link


def escaped(line: str) -> str:
    """A line of a docstring, which is plain text but for ``code``."""
    parts = re.split(r"(``.*?``)", line)
    return "".join(p if p.startswith("``") else SPECIAL.sub(r"\\\g<0>", p) for p in parts)


def plain_docstring(
    app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Lines "name: text" with indented continuations become a list; indented blocks become code;
    examples and all that is quoted by backticks stay as they are."""
    out: list[str] = []
    in_list = in_code = in_example = False
    for number, line in enumerate(lines):
        indented = line.startswith("    ")
        in_example = line.startswith(">>>") or (in_example and bool(line.strip()))
        if line.strip() and not indented:
            in_code = False
        field = None if in_example else FIELD.match(line)
        if field:
            if not in_list:
                out.append("")
            out.append(f"* ``{field['name']}``: {escaped(field['text'])}")
            in_list = True
            continue
        if in_list and indented and line.strip():
            out.append("  " + escaped(line.strip()))
            continue
        if in_list:
            out.append("")
            in_list = False
        if indented and not in_code and (number == 0 or not lines[number - 1].strip()):
            out += ["::", ""]
            in_code = True
        out.append(line if in_code or in_example else escaped(line))
    lines[:] = out


# --- the C++ reference ----------------------------------------------------------------------------
DOXYGEN = ROOT / "build" / "doxygen"
GENERATED = DOCS / "reference" / "generated"
breathe_projects = {"jali": str(DOXYGEN / "xml")}
breathe_default_project = "jali"
breathe_default_members = ("members", "undoc-members")
breathe_show_include = False
cpp_maximum_signature_line_length = 88
INTERNAL = {"arith", "at_fork"}  # rooms and headers that no program outside the library uses


def headers() -> dict[str, list[Path]]:
    """{room: its headers, relative to src}, the uppermost room first; those of engines and devices are left out."""
    source = ROOT / "src"
    found: dict[str, list[Path]] = {}
    for room in sorted(
        set(check_layers.ROOMS) - INTERNAL, key=lambda r: (-check_layers.ROOMS[r], r)
    ):
        folder = source / "jali" / room
        every = sorted([*folder.glob("*.h"), *folder.glob("secret/*.h")])
        found[room] = [
            h.relative_to(source)
            for h in every
            if not h.stem.endswith("_impl") and h.stem not in INTERNAL
        ]
    return {room: names for room, names in found.items() if names}


def run_doxygen(found: dict[str, list[Path]]) -> None:
    """XML of the headers, for breathe."""
    if not shutil.which("doxygen"):
        raise RuntimeError("the C++ reference needs doxygen (Debian: apt install doxygen)")
    DOXYGEN.mkdir(parents=True, exist_ok=True)
    # The comment at the top of a header describes the file; one behind a declaration, the
    # declaration.
    script = r"""1s|^// |/// \\file\n/// |; 2,/^#pragma/s|^// |/// |; s|([;,])  // |\1  ///< |"""
    (DOXYGEN / "filter.sed").write_text(script + "\n", encoding="utf-8")
    inputs = " ".join(f'"{ROOT / "src" / h}"' for names in found.values() for h in names)
    config = f"""
PROJECT_NAME = Jali
OUTPUT_DIRECTORY = "{DOXYGEN}"
INPUT = {inputs}
STRIP_FROM_PATH = "{ROOT / "src"}"
INPUT_FILTER = "sed -E -f {DOXYGEN / "filter.sed"}"
EXTRACT_ALL = YES
GENERATE_XML = YES
GENERATE_HTML = NO
GENERATE_LATEX = NO
MARKDOWN_SUPPORT = NO
AUTOLINK_SUPPORT = NO
QUIET = YES
WARNINGS = NO
"""
    subprocess.run(["doxygen", "-"], input=config, text=True, check=True)
    name_files_by_path(DOXYGEN / "xml")


def name_files_by_path(xml: Path) -> None:
    """Doxygen's index names a file without its folder, but breathe looks for it with its folder."""

    def with_folder(match: re.Match[str]) -> str:
        text = (xml / f"{match['id']}.xml").read_text(encoding="utf-8")
        places = re.findall(r'<location file="([^"]+)"/>', text)
        return f"{match['before']}{places[-1]}</name>"

    index = xml / "index.xml"
    pattern = r'(?P<before><compound refid="(?P<id>[^"]+)" kind="file"><name>)[^<]*</name>'
    index.write_text(
        re.sub(pattern, with_folder, index.read_text(encoding="utf-8")), encoding="utf-8"
    )


def write_cpp_pages(found: dict[str, list[Path]]) -> None:
    """A page a header, a list of them a room."""
    pages: dict[Path, str] = {}
    for room, names in found.items():
        folder = GENERATED / "cpp"
        entries = "\n".join(name.relative_to("jali").with_suffix("").as_posix() for name in names)
        pages[folder / f"{room}.md"] = (
            f"# {room}/\n\n```{{toctree}}\n:maxdepth: 1\n\n{entries}\n```\n"
        )
        for name in names:
            pages[folder / name.relative_to("jali").with_suffix(".md")] = (
                f"# {name.as_posix()}\n\n```{{doxygenfile}} {name.as_posix()}\n"
                f":project: jali\n```\n"
            )
    rooms = "\n".join(f"generated/cpp/{room}" for room in found)
    pages[DOCS / "reference" / "cpp_rooms.txt"] = ".. toctree::\n   :maxdepth: 2\n\n   " + (
        rooms.replace("\n", "\n   ") + "\n"
    )
    for path, text in pages.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def make_cpp_reference(app: Any) -> None:
    """Before Sphinx looks for pages."""
    found = headers()
    run_doxygen(found)
    write_cpp_pages(found)


def setup(app: Any) -> None:
    """What Sphinx calls."""
    app.connect("builder-inited", make_cpp_reference, priority=100)
    app.connect("autodoc-process-docstring", plain_docstring)
    app.connect("autodoc-process-signature", plain_signature)


# --- how it looks ---------------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = "Jali"
html_static_path = ["_static"]
html_css_files = ["jali.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "Jali"},
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-light",
    "pygments_dark_style": "github-dark",
}
copyright = "The Jali authors, Apache-2.0"
copybutton_exclude = ".linenos, .gp, .go"
