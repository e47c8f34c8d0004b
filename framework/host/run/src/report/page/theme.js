// Light, dark, or what the system has. The choice is kept where the browser lets a file keep it.
const themes = ["auto", "light", "dark"];
const systemDark = window.matchMedia("(prefers-color-scheme: dark)");
const palettes = {
  light: ["#2f5fd0", "#d1681b", "#16945a", "#a23fb3", "#c8313f", "#0c8a9e", "#8a6d0b", "#5d6b82", "#7a4bd1", "#4f7d16", "#b3437c", "#7a4a2a"],
  dark: ["#82a8ff", "#ffa05c", "#4fd394", "#dd8bec", "#ff7f86", "#4cc9dd", "#e0bd4a", "#a5b1c4", "#b79cff", "#a9d65c", "#ff8fc4", "#cf9a72"],
};
let theme = "auto";
let onPaper = false;  // paper is light
try { theme = themes.find((one) => one === localStorage.getItem("treadle-theme")) || "auto"; } catch (ignored) { /* not kept, then */ }

const colour = (index) => {
  const isDark = !onPaper && (theme === "dark" || (theme === "auto" && systemDark.matches));
  const palette = isDark ? palettes.dark : palettes.light;
  return palette[index % palette.length];
};
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const withAlpha = (hex, alpha) => hex + Math.round(alpha * 255).toString(16).padStart(2, "0");

function themeButton(repaint) {
  const button = element("button", { class: "chip", type: "button", click: () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try { localStorage.setItem("treadle-theme", theme); } catch (ignored) { /* not kept, then */ }
    show();
  } });
  function show() {
    const root = document.documentElement;
    if (onPaper || theme !== "auto") root.setAttribute("data-theme", onPaper ? "light" : theme);
    else root.removeAttribute("data-theme");
    button.textContent = "Theme: " + theme;
    repaint();
  }
  systemDark.addEventListener("change", show);
  for (const [event, printing] of [["beforeprint", true], ["afterprint", false]]) {
    window.addEventListener(event, () => { onPaper = printing; show(); });
  }
  show();
  return button;
}

