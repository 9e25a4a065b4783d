"""The page in a real browser: it sorts, it can be read without its script, and hostile names do nothing."""

import re

import pytest
from made_runs import document_of, every_verdict, on_grid, point, requirement, run_content
from report_documents import EVERY_KIND, document, documents

from verifier.evidence.report import html_report

LONG = "n" * 10_000
NAMES = (
    "<script>document.title='owned';alert(1)</script>",
    "<img src=x onerror=\"document.title='owned';alert(1)\">",
    "'\"><svg onload=alert(1)>",
    "</style></table></title><script>alert(1)</script>",
    "javascript:alert(1)",
    "\u202eevil\u2066 \x1b[31m \x07",
    "שלום עולם",
    "{{7*7}} ${7*7} <!-- -- --> ]]>",
    "<b onclick='x'>&\"]]>--> \x00\x0b\ufffe\n[a](http://x) {0}",
    LONG,
)
"""Names of requirements, planners, environments, files and remarks."""

CONTRAST = """
() => {
  const channel = v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const luminance = c => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
  const parse = text => text.match(/[0-9.]+/g).map(Number);
  const behind = element => {
    for (let each = element; each; each = each.parentElement) {
      const colour = parse(getComputedStyle(each).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  let worst = [99, ''];
  for (const element of document.querySelectorAll('body *')) {
    const own = Array.from(element.childNodes).some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || element.tagName === 'SCRIPT') continue;
    const svg = element.tagName === 'text';
    const a = luminance(parse(svg ? getComputedStyle(element).fill : getComputedStyle(element).color));
    const b = luminance(behind(element));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst[0]) worst = [ratio, element.outerHTML.slice(0, 120)];
  }
  return worst;
}
"""


class Visit:
    """A page that is open, and everything that it tried to do."""

    def __init__(self, browser, file, **settings):
        self.asked, self.dialogs, self.complaints = [], [], []
        self.page = browser.new_context(**settings).new_page()
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(file.as_uri())

    def column(self, caption, at):
        """Texts of one column of the table with this caption."""
        table = self.page.locator("table", has=self.page.locator("caption", has_text=caption)).first
        return table.locator(f"tbody tr > :nth-child({at})").all_inner_texts()


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(html_report(documents(*EVERY_KIND)))
    return file


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "hostile.html"
    runs = []
    for at, name in enumerate(NAMES):  # a run of each, for a run tells every requirement under all of its planners
        told = point("violated", 0.1, name, initial={name: 1}, constants={name: "1"})
        asked = requirement(name, "violated", [told], planner=name)
        content = run_content([asked], "violated", title=NAMES[0], remarks=list(NAMES))
        content["inputs"][0]["name"] = NAMES[1]
        content["settings"]["set"] = dict.fromkeys(NAMES, "1")
        content["versions"] |= {NAMES[2]: NAMES[2]}
        runs.append(document_of(content, f"<b>{at}.json"))
    file.write_text(html_report(runs))
    return file


def test_the_page_loads_nothing_and_its_script_runs_without_complaint(browser, told):
    visit = Visit(browser, told)
    assert visit.asked == [told.as_uri()]
    assert visit.complaints == []
    assert visit.page.locator("th button").count() > 50


def test_a_click_sorts_and_another_one_turns_the_order(browser, told):
    visit = Visit(browser, told)
    head = visit.page.locator("#verdicts th", has_text="P (worst)")
    before = visit.column("All requirements", 6)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    up = [float(text) for text in visit.column("All requirements", 6)]
    assert up == sorted(map(float, before))
    assert list(map(float, before)) != up
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert [float(text) for text in visit.column("All requirements", 6)] == up[::-1]
    assert visit.page.locator("#verdicts th[aria-sort]").count() == 1


def test_bins_are_sorted_by_distance_and_texts_by_their_numbers(browser, tmp_path):
    names = [f"r{k}" for k in (10, 9, 1)]
    file = tmp_path / "r.html"
    found = [requirement(name, "violated", [point("violated", 0.1)]) for name in names]
    file.write_text(html_report([document_of(run_content(found, "violated"))]))
    visit = Visit(browser, file)
    visit.page.locator("#verdicts th button").first.click()
    assert visit.column("All requirements", 1) == ["r1", "r9", "r10"]


def test_the_keyboard_reaches_the_verdicts_and_sorts(browser, told):
    visit = Visit(browser, told)
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("document.activeElement.className") == "skip"
    assert visit.page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    visit.page.keyboard.press("Enter")
    assert visit.page.evaluate("location.hash") == "#verdicts"
    visit.page.locator("#verdicts th button").first.focus()
    visit.page.keyboard.press("Enter")
    assert visit.page.locator("#verdicts th").first.get_attribute("aria-sort") == "ascending"
    assert visit.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_the_keyboard_stops_only_at_tables_that_can_be_scrolled(browser, told):
    reached = (
        "Array.from(document.querySelectorAll('.scroll')).map(e => [e.tabIndex, e.scrollWidth > e.clientWidth + 1])"
    )
    found = Visit(browser, told, viewport={"width": 390, "height": 800}).page.evaluate(reached)
    assert {(stop, wide) for stop, wide in found} == {(0, True), (-1, False)}


def test_without_its_script_the_page_says_the_same(browser, told):
    words = "document.body.textContent.replace(/\\s+/g, ' ')"
    visit = Visit(browser, told, java_script_enabled=False)
    assert visit.page.locator("th button").count() == 0
    plain = visit.page.locator("main").inner_text()
    other = Visit(browser, told)
    assert plain.split() == other.page.locator("main").inner_text().split()
    assert other.page.evaluate(words)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_what_is_behind_it(browser, told, scheme):
    """WCAG 2.1: contrast of 4.5 at least, of every text that is there, badges, heat cells and pictures included."""
    page = Visit(browser, told, color_scheme=scheme).page
    assert page.evaluate("getComputedStyle(document.body).backgroundColor === 'rgb(255, 255, 255)'") == (
        scheme == "light"
    )
    ratio, where = page.evaluate(CONTRAST)
    assert ratio >= 4.5, where


def test_on_paper_every_table_fits_and_no_number_is_broken(browser, told, hostile):
    """A4 is 210 mm wide, 28 of them margins: 688 pixels."""
    for file in (told, hostile):
        page = Visit(browser, file, viewport={"width": 688, "height": 1000}).page
        page.emulate_media(media="print")
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate("document.documentElement.scrollWidth") <= 688
    page = Visit(browser, told, viewport={"width": 688, "height": 1000}).page
    page.emulate_media(media="print")
    lines = (
        "Array.from(document.querySelectorAll('td[data-o]')).filter(e => !e.textContent.includes(' ')).map(height)"
    )
    height = "const height = e => { const r = document.createRange(); r.selectNodeContents(e); "
    height += "return new Set(Array.from(r.getClientRects()).map(b => b.top)).size; }; "
    assert page.evaluate(f"() => {{ {height} return Math.max(...{lines}); }}") == 1


@pytest.mark.parametrize("width", [390, 1400])
def test_the_window_never_scrolls_sideways(browser, told, hostile, width):
    for file in (told, hostile):
        visit = Visit(browser, file, viewport={"width": width, "height": 800})
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [390, 800, 1400])
def test_the_table_of_verdicts_is_read_without_scrolling(browser, told, width):
    """On a telephone each row is a list of what is in its columns, each with its name."""
    page = Visit(browser, told, viewport={"width": width, "height": 800}).page
    place = page.locator("#verdicts .scroll").first
    assert place.evaluate("e => e.scrollWidth <= e.clientWidth + 1")
    narrow = width < 928
    assert page.locator("#verdicts thead").first.is_visible() == (not narrow)
    label = place.locator("tbody td").first.evaluate("e => getComputedStyle(e, '::before').content")
    assert label == ('"verdict"' if narrow else "none")


def test_two_requirements_are_ten_pages_at_most(browser, tmp_path):
    """Of A4, settings, matrices and provenance included."""
    file = tmp_path / "two.html"
    content = dict(document("run").content)
    content["requirements"] = content["requirements"][:2]
    file.write_text(html_report([document_of(content), document("by_class")]))
    printed = Visit(browser, file).page.pdf(format="A4", prefer_css_page_size=True)
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 10


def test_the_verdicts_are_on_the_first_screen_however_many_there_are(browser, tmp_path):
    """The table of contents is folded where it is long."""
    file = tmp_path / "many.html"
    many = [requirement(f"r{k}", "violated", [point("violated", 0.1)]) for k in range(200)]
    file.write_text(html_report([document_of(run_content(many, "violated"))]))
    page = Visit(browser, file, viewport={"width": 1400, "height": 900}).page
    assert page.get_by_text("Overall verdict:").bounding_box()["y"] < 450
    assert not page.locator("nav a[href='#r7']").is_visible()
    page.locator("nav summary").press("Enter")
    assert page.locator("nav a[href='#r7']").is_visible()


def test_pictures_can_be_read_in_a_narrow_window(browser, told):
    """Their texts are at least 8 pixels high on a telephone."""
    page = Visit(browser, told, viewport={"width": 390, "height": 800}).page
    scale = "e => 12 * e.getBoundingClientRect().width / e.viewBox.baseVal.width"
    heights = page.evaluate(f"Array.from(document.querySelectorAll('svg')).map({scale})")
    assert min(heights) >= 8


def test_tables_that_can_be_scrolled_are_no_landmarks(browser, told):
    """A page with a hundred landmarks has none."""
    page = Visit(browser, told).page
    assert page.locator("[role=region]").count() == 0
    assert page.locator(".scroll[role=group]").count() > 50


def test_on_paper_everything_is_open(browser, told):
    visit = Visit(browser, told)
    assert not visit.page.get_by_text("bounded rates").nth(0).is_hidden()
    setting = visit.page.locator("details td", has_text="lsb_first").first
    assert not setting.is_visible()
    visit.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert setting.is_visible()
    visit.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert not setting.is_visible()
    visit.page.emulate_media(media="print")
    assert not visit.page.get_by_text("The map as a table").first.is_visible()  # the picture is there
    assert visit.page.pdf()[:5] == b"%PDF-"


def test_hostile_names_do_nothing(browser, hostile):
    visit = Visit(browser, hostile)
    visit.page.locator("#verdicts th button").first.click()
    visit.page.wait_for_timeout(200)
    assert visit.dialogs == []
    assert visit.asked == [hostile.as_uri()]
    assert visit.complaints == []
    assert visit.page.title() == NAMES[0]
    assert visit.page.locator("script").count() == 1
    assert visit.page.locator("img, main style, b, main a:not([href^='#'])").count() == 0


def test_hostile_names_are_shown_letter_by_letter(browser, hostile):
    text = Visit(browser, hostile).page.locator("body").inner_text()
    for name in NAMES[:5]:
        assert name in text
    for turned in ("\u202e", "\u2066", "\x1b", "\x07", "\x00"):
        assert turned not in text
    assert "\\u202eevil\\u2066 \\x1b[31m \\x07" in text
    assert "(10000 characters, SHA-256 f2ac4367)" in text


def test_even_markup_that_slipped_through_could_not_run(browser, hostile, tmp_path):
    """The page's own rules forbid every script but its own."""
    file = tmp_path / "slipped.html"
    slip = (
        "<script>document.title='owned'</script><img src='http://x.invalid/a.png' onerror=\"document.title='owned'\">"
    )
    file.write_text(hostile.read_text().replace("<main>", "<main>" + slip, 1))
    visit = Visit(browser, file)
    visit.page.wait_for_timeout(200)
    assert visit.page.title() == NAMES[0]
    assert len(visit.complaints) >= 2
    assert all("Content Security Policy" in each for each in visit.complaints)


def test_right_to_left_names_do_not_turn_what_is_around_them(browser, hostile):
    page = Visit(browser, hostile).page
    row = page.locator("#verdicts tbody tr", has_text="שלום").first
    assert row.locator("bdi").first.inner_text() == "שלום עולם"


def test_every_verdict_has_a_word_beside_its_colour(browser, tmp_path):
    file = tmp_path / "r.html"
    file.write_text(html_report([document_of(on_grid(every_verdict()))]))
    marks = Visit(browser, file).page.locator("#verdicts tbody .v").all_inner_texts()
    assert marks == ["violated", "inconclusive", "satisfied", "no target"]
