"""Texts for LaTeX: special characters print as themselves, and the symbols of our sentences have their commands."""

from __future__ import annotations

_GREEK = {
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "δ": "delta",
    "ε": "varepsilon",
    "θ": "theta",
    "λ": "lambda",
    "μ": "mu",
    "π": "pi",
    "ρ": "rho",
    "σ": "sigma",
    "τ": "tau",
    "φ": "varphi",
    "ψ": "psi",
    "ω": "omega",
}
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "−": "$-$",
    "–": "--",
    "×": r"$\times$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "→": r"$\to$",
    "√": r"$\surd$",
    "²": r"\textsuperscript{2}",
    "…": r"\dots{}",
    "·": r"$\cdot$",
    "±": r"$\pm$",
    "∞": r"$\infty$",
    **{letter: f"$\\{name}$" for letter, name in _GREEK.items()},
}


def latex(text: str) -> str:
    """One line of LaTeX that prints the text.

    >>> latex("50% of x_1 & α")
    '50\\\\% of x\\\\_1 \\\\& $\\\\alpha$'
    """
    return "".join(_SPECIAL.get(letter, letter) for letter in " ".join(str(text).split()))
