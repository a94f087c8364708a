// Renders the mathematics of a page with the KaTeX that lies beside this file; nothing is loaded from elsewhere.
document.addEventListener("DOMContentLoaded", () => {
  for (const element of document.querySelectorAll(".arithmatex")) {
    renderMathInElement(element, {
      delimiters: [
        { left: "\\(", right: "\\)", display: false },
        { left: "\\[", right: "\\]", display: true },
      ],
      throwOnError: false,
    });
  }
});
