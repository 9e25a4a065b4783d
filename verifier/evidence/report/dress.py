"""How a page looks and what its one script does: sort tables, let the keyboard stop
only at those that can be scrolled, and open what is folded before printing."""

STYLE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1a1d21;--quiet:#414952;--line:#c8cdd4;--cell:#d5dae0;--pale:#f6f8fa;
--head:#eef1f4;--code:#f3f5f7;--link:#0b4f9c;--arrow:#4b535e;--edge:#b07a00;--note:#3d3300;--noted:#fffbf0;
--ok:#0b5028;--oked:#e3f4e8;--bad:#8a1210;--baded:#fdeaea;--open:#5f3f00;--opened:#fff2d4;--none:#3b424d;--noned:#eef0f3;
--h1:#f2f7fc;--h2:#e6eff9;--h3:#d9e7f5;--h4:#ccdff1;--h5:#bfd7ee;--h6:#b2cfea;--h7:#a5c7e6;--h8:#98bfe3;--h9:#8bb7df;
--h10:#7eafdb}
@media screen and (prefers-color-scheme:dark){:root{--paper:#14171a;--ink:#e4e7ea;--quiet:#b3bac2;--line:#3d444c;
--cell:#363d45;--pale:#1b1f23;--head:#23282e;--code:#1f2429;--link:#8ab8f0;--arrow:#b3bac2;--edge:#d19a1f;--note:#f0e2b8;
--noted:#272212;--ok:#8fe0ad;--oked:#12301e;--bad:#ffaba6;--baded:#3d1716;--open:#ffd27a;--opened:#33270c;--none:#c3cad2;
--noned:#262b31;--h1:#172028;--h2:#182632;--h3:#192b3b;--h4:#1a3145;--h5:#1b374f;--h6:#1c3d59;--h7:#1d4363;--h8:#1e496d;
--h9:#1f4f77;--h10:#205581}
figure svg{background:#fff;border-radius:4px}}
@media (forced-colors:active){figure svg{background:#fff;forced-color-adjust:none}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:84rem;padding:0 1.2rem 3rem;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",sans-serif}
h1{font-size:1.7rem;line-height:1.25;margin:1.6rem 0 .6rem}
h2{font-size:1.35rem;margin:2.6rem 0 .6rem;padding-top:.5rem;border-top:2px solid var(--ink)}
h3{font-size:1.12rem;margin:2.2rem 0 .5rem;padding-top:.4rem;border-top:1px solid var(--line)}
h4{font-size:1rem;margin:1.5rem 0 .4rem}
h1,h2,h3,h4,p,li,figcaption,caption,summary{overflow-wrap:anywhere}
td,th{overflow-wrap:break-word}
p,ul,ol{margin:.5rem 0;max-width:62rem}
a{color:var(--link)}
a:focus-visible,button:focus-visible,summary:focus-visible,.scroll:focus-visible{
outline:3px solid var(--link);outline-offset:2px}
.skip{position:absolute;left:-100rem}
.skip:focus{left:1rem;top:1rem;background:var(--paper);padding:.4rem}
nav{border:1px solid var(--line);border-radius:6px;padding:.4rem 1rem;background:var(--pale);color:var(--ink)}
nav ul{margin:.2rem 0;padding-left:1.1rem;max-width:none}
nav>ul{list-style:none;padding:0;columns:20rem}
nav ul ul{columns:22rem;font-size:.92rem}
nav details{margin:.1rem 0}
nav summary{font-weight:400;font-size:.92rem}
nav>ul>li{break-inside:avoid}
nav li li{break-inside:avoid;padding-right:1rem}
td[data-o]{white-space:nowrap}
.told{font-size:1.05rem}
.told{margin-top:1rem}
.lead{font-weight:600;margin-top:1rem}
.note{border-left:4px solid var(--edge);padding:.1rem 0 .1rem .8rem;color:var(--note);background:var(--noted)}
.formula code{display:block;padding:.5rem .7rem;background:var(--code);color:var(--ink);border-radius:4px;
white-space:pre-wrap}
code{font:.9em/1.45 ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace}
.v{display:inline-block;padding:.02em .55em;border-radius:4px;font-size:.86em;font-weight:600;white-space:nowrap;
border:1px solid currentColor;vertical-align:.06em}
.ok{color:var(--ok);background:var(--oked)}
.bad{color:var(--bad);background:var(--baded)}
.open{color:var(--open);background:var(--opened)}
.none{color:var(--none);background:var(--noned)}
.scroll{overflow-x:auto;margin:.9rem 0}
.side{display:inline-block;vertical-align:top;max-width:100%;padding-right:1.6rem}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
caption{text-align:left;font-weight:600;padding:.2rem 0 .35rem}
th,td{border:1px solid var(--cell);padding:.28rem .6rem;text-align:left;vertical-align:top;min-width:4.2rem;
max-width:38rem}
thead th{background:var(--head);color:var(--ink);vertical-align:bottom;font-weight:600}
tbody th{font-weight:500}
.t{min-width:13rem}
.facts th{background:var(--pale);color:var(--ink);min-width:11rem;max-width:22rem}
th button{all:unset;cursor:pointer;font-weight:600}
th button:focus-visible{outline:3px solid var(--link)}
th button::after{content:"\\a0\\2195";content:"\\a0\\2195"/"";color:var(--arrow)}
th[aria-sort=ascending] button::after{content:"\\a0\\2191";content:"\\a0\\2191"/"";color:var(--ink)}
th[aria-sort=descending] button::after{content:"\\a0\\2193";content:"\\a0\\2193"/"";color:var(--ink)}
.h1{background:var(--h1)}.h2{background:var(--h2)}.h3{background:var(--h3)}.h4{background:var(--h4)}
.h5{background:var(--h5)}.h6{background:var(--h6)}.h7{background:var(--h7)}.h8{background:var(--h8)}
.h9{background:var(--h9)}.h10{background:var(--h10)}
figure{margin:.9rem 0;max-width:42rem}
figure svg{max-width:100%;height:auto;display:block;font-family:inherit}
figcaption{font-size:.86rem;color:var(--quiet)}
details{margin:.7rem 0}
summary{cursor:pointer;font-weight:600}
footer{margin-top:3rem;border-top:1px solid var(--line);padding-top:.6rem;font-size:.86rem;color:var(--quiet)}
@media (max-width:40rem){body{padding:0 .7rem 2rem;font-size:15px}table{font-size:.84rem}
th,td{padding:.22rem .4rem;max-width:16rem}
.facts th{min-width:7.5rem}}
@page{margin:15mm 14mm}
@media print{body{max-width:none;padding:0;font-size:10pt}nav,.skip{display:none}a{color:inherit;text-decoration:none}
details.screen{display:none}
.scroll{overflow:visible}table{font-size:8.5pt}td,th{overflow-wrap:anywhere;min-width:2.6rem}
td[data-o]{overflow-wrap:normal;white-space:normal}.t{min-width:0}
tr,figure{break-inside:avoid}thead{display:table-header-group}
h2,h3,h4,caption{break-after:avoid}th button::after{content:""}
.v,td,th,.note,.formula code{print-color-adjust:exact;-webkit-print-color-adjust:exact}
details::details-content{content-visibility:visible;display:block}}
"""

SCRIPT = """
(function () {
  "use strict";
  function key(row, column) {
    var cell = row.cells[column];
    var order = cell.getAttribute("data-o");
    return order === null ? cell.textContent : Number(order);
  }
  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "number") return -1;
    if (typeof b === "number") return 1;
    return a.localeCompare(b, "en", {numeric: true});
  }
  function sort(table, column, heading) {
    var down = heading.getAttribute("aria-sort") === "ascending";
    var body = table.tBodies[0];
    var rows = Array.prototype.map.call(body.rows, function (row, at) {
      return {row: row, key: key(row, column), at: at};
    });
    rows.sort(function (a, b) {
      var order = compare(a.key, b.key);
      return (down ? -order : order) || a.at - b.at;
    });
    Array.prototype.forEach.call(heading.parentNode.cells, function (other) {
      other.removeAttribute("aria-sort");
    });
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    rows.forEach(function (each) { body.appendChild(each.row); });
  }
  document.querySelectorAll("table.sort").forEach(function (table) {
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (heading, column) {
      var button = document.createElement("button");
      button.type = "button";
      while (heading.firstChild) button.appendChild(heading.firstChild);
      heading.appendChild(button);
      button.addEventListener("click", function () { sort(table, column, heading); });
    });
  });
  function reach() {
    var all = Array.prototype.map.call(document.querySelectorAll(".scroll"), function (place) {
      return {place: place, wide: place.scrollWidth > place.clientWidth + 1};
    });
    all.forEach(function (each) {
      if (each.wide) each.place.setAttribute("tabindex", "0"); else each.place.removeAttribute("tabindex");
    });
  }
  reach();
  window.addEventListener("resize", reach);
  document.addEventListener("toggle", reach, true);
  var closed = [];
  window.addEventListener("beforeprint", function () {
    closed = Array.prototype.slice.call(document.querySelectorAll("details:not([open])"));
    closed.forEach(function (each) { each.open = true; });
  });
  window.addEventListener("afterprint", function () {
    closed.forEach(function (each) { each.open = false; });
  });
}());
"""
