"""A page read as a tree by the standard library's parser, with complaints where tags do not fit."""

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "wbr", "hr", "img", "input", "rect", "circle"}


class Element:
    """A tag, its attributes, and what is in it."""

    def __init__(self, tag, attributes, parent):
        self.tag, self.attributes, self.parent, self.children = tag, dict(attributes), parent, []

    def all(self, *tags):
        """Every element below with one of these tags, in order."""
        for child in self.children:
            if isinstance(child, Element):
                if child.tag in tags or not tags:
                    yield child
                yield from child.all(*tags)

    @property
    def text(self):
        """Everything that is written below."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)


class Reader(HTMLParser):
    """Builds the tree; every end tag must close the element that is open."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.root = self.open = Element("root", {}, None)

    def handle_starttag(self, tag, attributes):
        assert len({name for name, _ in attributes}) == len(attributes), f"attribute twice in {tag}"
        element = Element(tag, attributes, self.open)
        self.open.children.append(element)
        if tag not in VOID:
            self.open = element

    def handle_startendtag(self, tag, attributes):
        self.open.children.append(Element(tag, attributes, self.open))

    def handle_endtag(self, tag):
        assert self.open.tag == tag, f"</{tag}> closes <{self.open.tag}>"
        self.open = self.open.parent

    def handle_data(self, data):
        self.open.children.append(data)


def read_page(text):
    """The root of a page; AssertionError where a tag is not closed."""
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open is reader.root
    return reader.root


def section(root, anchor):
    """The element with this id."""
    (found,) = [each for each in root.all() if each.attributes.get("id") == anchor]
    return found


def table(root, caption):
    """Rows of texts of the table whose caption starts so, header first where it has one."""
    (found,) = [each for each in root.all("table") if next(each.all("caption")).text.startswith(caption)]
    return [[cell.text for cell in row.all("th", "td")] for row in found.all("tr")]
