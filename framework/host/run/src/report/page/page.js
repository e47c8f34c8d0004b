// Puts the page together.
document.title = report.title + " · " + report.kind;
const themeChip = element("div");
const main = element("main", {}, ...report.blocks.map((block) => make(block)));
const subtitle = report.subtitle.length ? element("p", { class: "subtitle" }, report.subtitle.map(setting).join(" · ")) : "";
document.body.append(
  element("header", { class: "page-head" }, element("div", {}, element("h1", {}, report.title), subtitle), themeChip),
  main,
  element("footer", {}, "Written by Treadle " + report.version + ". This file is complete in itself and loads nothing."));
themeChip.append(themeButton(redraw));
