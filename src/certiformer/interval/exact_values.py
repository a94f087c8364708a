"""Exact values of elementary functions for the start-up check: (argument, correctly rounded value), as hexadecimal doubles.

Computed with ball arithmetic at 400 bits. The arguments are the worst ones met when the errors of `padding.MEASURED` were
measured, and hard or extreme ones: next to multiples of pi/2, at saturation, near overflow, near 1.
"""

from __future__ import annotations

EXACT: dict[str, tuple[tuple[str, str], ...]] = {
    "sqrt": (
        ("0x1.0000000000000p+1", "0x1.6a09e667f3bcdp+0"),
        ("0x1.56e1fc2f8f359p-997", "0x1.a2fe76a3f9475p-499"),
        ("0x1.355c3c7a73afap+666", "0x1.196b12fdfb6dbp+333"),
        ("0x1.999999999999ap-4", "0x1.43d136248490fp-2"),
    ),
    "exp": (
        ("0x1.8f8253e7f5388p-2", "0x1.7a2981f1c4e14p+0"),
        ("0x1.c3969a6bb1f74p+8", "0x1.6b1797788dde8p+651"),
        ("-0x1.1f1f04a9dddc0p+2", "0x1.710d7f102b164p-7"),
        ("-0x1.5e00000000000p+9", "0x1.14f2b0fb9307fp-1010"),
        ("0x1.62d999999999ap+9", "0x1.d75ae7a50ee14p+1023"),
        ("0x1.70ef54646d497p-57", "0x1.0000000000000p+0"),
        ("-0x1.51e1a9311e018p-2", "0x1.701a50ccb318bp-1"),
        ("-0x1.70b0934db875fp+5", "0x1.6cf8c7b3ba05bp-67"),
    ),
    "log": (
        ("0x1.1a1d0022a24d8p+0", "0x1.8dd981fb7de3ep-4"),
        ("0x1.021c8b59cf4b3p+0", "0x1.0d29e50e00434p-7"),
        ("0x1.4ac68994a7d5cp-1019", "-0x1.6107c57d858aap+9"),
        ("0x1.7e43c8800759cp+996", "0x1.5963447f87fb5p+9"),
        ("0x1.6a09e667f3bccp-1", "-0x1.62e42fefa39f1p-2"),
        ("0x1.c4297316c7366p-1", "-0x1.fd1187b5a4a2ap-4"),
    ),
    "sin": (
        ("-0x1.ea490fad99ac0p-3", "-0x1.e59d9cb2e49d3p-3"),
        ("0x1.f2ace75e100a8p+14", "0x1.b29492207d847p-3"),
        ("0x1.53ceb35912c6ep+16", "0x1.5c3c0a80bc1f5p-35"),
        ("0x1.921fb54442d18p+1", "0x1.1a62633145c07p-53"),
        ("0x1.6000000000000p+4", "-0x1.220a29f6eb9f4p-7"),
        ("0x1.6300000000000p+8", "-0x1.f9bd0307d1de3p-16"),
        ("0x1.86a0000000000p+16", "0x1.24daa9c527e96p-5"),
    ),
    "cos": (
        ("-0x1.b995ab469bb20p+0", "-0x1.3a7008ae7f569p-3"),
        ("-0x1.542a3f9d80941p+15", "0x1.c0aa4492f7525p-3"),
        ("0x1.4f3c75128f204p+16", "-0x1.7c4f1d3ba50a1p-41"),
        ("0x1.921fb54442d18p+0", "0x1.1a62633145c07p-54"),
        ("0x1.6000000000000p+3", "0x1.220ae41ee2fdfp-8"),
        ("0x1.2d97c7f3321d2p+2", "-0x1.a79394c9e8a0ap-53"),
        ("0x1.869f800000000p+16", "-0x1.b8428c9f69a31p-1"),
    ),
    "tan": (
        ("0x1.83579c20c91bep+1", "-0x1.db2051abb085dp-4"),
        ("-0x1.d2f5adc95aa5cp+0", "0x1.ee8c11f840304p+1"),
        ("-0x1.4bef571ce80dap+15", "-0x1.f18f3433c9f1cp-1"),
        ("0x1.2d97c7f3321d2p+3", "-0x1.a79394c9e8a0ap-52"),
        ("0x1.9219652bd3c36p+0", "0x1.446a9e8d1a52fp+13"),
        ("0x1.4f8b588e368f1p-17", "0x1.4f8b588e6698ep-17"),
    ),
    "tanh": (
        ("0x1.113bcaa3b5430p-1", "0x1.f3e3b3f6d8b0cp-2"),
        ("-0x1.30fa0d4130658p+4", "-0x1.fffffffffffffp-1"),
        ("0x1.29e610e856aa8p+4", "0x1.fffffffffffffp-1"),
        ("0x1.5798ee2308c3ap-27", "0x1.5798ee2308c3ap-27"),
        ("0x1.6800000000000p+4", "0x1.0000000000000p+0"),
        ("-0x1.a36e2eb1c432dp-12", "-0x1.a36e2d3a7769ap-12"),
    ),
    "atan": (
        ("0x1.bc703510a3500p-3", "0x1.b5a6fceb4023dp-3"),
        ("-0x1.e42c664d58a9dp+3", "-0x1.813a977ee8eb2p+0"),
        ("0x1.7e43c8800759cp+996", "0x1.921fb54442d18p+0"),
        ("0x1.12e0be826d695p-30", "0x1.12e0be826d695p-30"),
        ("0x1.b851eb851eb85p-2", "0x1.9fd82b5dc5e5fp-2"),
    ),
    "erf": (
        ("-0x1.a8f71d81b0700p-8", "-0x1.df83e84fdcd17p-8"),
        ("0x1.5dcb9b0f42470p-4", "0x1.89be8d10a9565p-4"),
        ("0x1.ac926e42efb76p-1", "0x1.86e924bcb7691p-1"),
        ("0x1.799999999999ap+2", "0x1.fffffffffffffp-1"),
        ("-0x1.8000000000000p+1", "-0x1.fffd1ac4135f9p-1"),
        ("0x1.19799812dea11p-40", "0x1.3d9c49b6a903ep-40"),
    ),
}
