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
