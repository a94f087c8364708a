"""The style sheet of the report: system fonts, light and dark by the reader's setting, one column on a telephone."""

CSS = """
:root{color-scheme:light dark;--page:#fbfaf7;--card:#fff;--ink:#1d2126;--quiet:#5d666f;--line:#dcdad3;--accent:#1b6e8a;
--wide:#b9c7cf;--thin:#0f4c63;--error:#b3412c;--band:#1b6e8a22;--good:#1d7a4d;--weak:#8a6a12;--bad:#b3312c}
@media (prefers-color-scheme:dark){:root{--page:#14171a;--card:#1c2024;--ink:#e6e3dc;--quiet:#9aa3ab;--line:#343a40;
--accent:#66b8d4;--wide:#4a5a64;--thin:#9bd6ea;--error:#f08a73;--band:#66b8d426;--good:#59c48d;--weak:#d9b44a;
--bad:#f0776f}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:58rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{font-size:1.05rem;font-weight:600;margin:0 0 1.2rem;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:2.6rem 0 .8rem}
h3{font-size:.95rem;margin:0 0 .5rem}
code,.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.92em;
overflow-wrap:anywhere}
p{margin:.5rem 0}
.quiet,figcaption,.name{color:var(--quiet)}
.claim{background:var(--card);border:1px solid var(--line);border-left:.4rem solid var(--tone);border-radius:.5rem;
padding:1.1rem 1.3rem 1.3rem}
.claim .sentence{font-size:1.2rem;line-height:1.45;margin:.7rem 0;overflow-wrap:anywhere}
.badge{display:inline-block;background:var(--tone);color:var(--card);border-radius:.35rem;padding:.1rem .7rem;
font-weight:700;letter-spacing:.02em}
.good{--tone:var(--good)}.weak{--tone:var(--weak)}.bad{--tone:var(--bad)}
.bracket{margin:1.4rem 0 .2rem;position:relative;height:3.4rem}
.bracket .track{position:absolute;left:0;right:0;top:.9rem;height:.8rem;background:var(--line);border-radius:.4rem}
.bracket .known{position:absolute;top:.9rem;height:.8rem;min-width:3px;background:var(--tone);border-radius:.2rem}
.bracket .mark{position:absolute;top:.3rem;height:2rem;border-left:2px dashed var(--ink)}
.bracket .mark span{position:absolute;top:2rem;transform:translateX(-50%);white-space:nowrap;font-size:.85rem}
.bracket .end{position:absolute;top:1.9rem;font-size:.85rem;color:var(--quiet)}
dl.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(7rem,1fr));gap:.7rem;margin:0}
dl.facts div{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.5rem .7rem}
dl.facts dt{font-size:.8rem;color:var(--quiet)}
dl.facts dd{margin:0;font-size:1.1rem;font-weight:600;font-variant-numeric:tabular-nums}
ul.plain{padding-left:1.1rem;margin:.4rem 0}ul.plain li{margin:.3rem 0}
ul.tree,ul.tree ul{list-style:none;padding-left:0;margin:0}
ul.tree ul{padding-left:1rem;border-left:2px solid var(--line);margin:.3rem 0 .3rem .4rem}
ul.tree ul.notes{border:0;padding-left:0;margin:0 0 0 .2rem;color:var(--quiet);font-size:.92rem}
.rule{background:var(--accent);color:var(--card);border-radius:.3rem;padding:.02rem .5rem;margin-right:.35rem;
font-size:.9rem}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,17rem),1fr));gap:1.2rem}
figure{margin:0;background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:1rem 1rem .8rem;
min-width:0}
figure.broad{grid-column:1/-1}
figcaption{font-size:.88rem;margin-top:.6rem}
.frame{display:grid;grid-template-columns:3.4rem 1fr;grid-template-rows:1fr 1.3rem auto;font-size:.8rem}
.frame .plot{grid-column:2;grid-row:1;position:relative;border:1px solid var(--line);overflow:hidden}
.frame.square .plot{aspect-ratio:1}.frame.wide .plot{height:13rem}.frame.flat .plot{height:8rem}
.plot svg,.plot img{display:block;width:100%;height:100%}
img{image-rendering:pixelated}
.left{grid-column:1;grid-row:1;position:relative}
.left span{position:absolute;right:.45rem;transform:translateY(50%);white-space:nowrap}
.below{grid-column:2;grid-row:2;position:relative;height:1.3rem;font-size:.8rem}
.below span{position:absolute;white-space:nowrap}
.below .inner{transform:translateX(-50%)}.below .last{transform:translateX(-100%)}
.name{grid-column:2;grid-row:3;text-align:center;font-size:.82rem}
.legend{margin:.6rem 0 0 3.4rem}.legend img{display:block;width:100%;height:.7rem;border-radius:.2rem}
path{vector-effect:non-scaling-stroke;fill:none}
.curve.wide{stroke:var(--wide);stroke-width:5}.curve.thin{stroke:var(--thin);stroke-width:1.6}
.curve.error{stroke:var(--error);stroke-width:1.4}
.band{fill:var(--band)}.edge{stroke:var(--accent);stroke-width:1.2;stroke-dasharray:5 4}
path.filled{fill:var(--accent);fill-opacity:.55;stroke:var(--accent);stroke-width:1}
.keys{margin:.7rem 0 .3rem 3.4rem;font-size:.85rem}
.key{margin-right:1.2rem;white-space:nowrap}
.key::before{content:"";display:inline-block;width:1.4rem;height:0;border-top:3px solid;margin-right:.4rem;
vertical-align:middle}
.key.wide::before{border-color:var(--wide);border-width:6px}.key.thin::before{border-color:var(--thin)}
.key.error::before{border-color:var(--error)}
.key.band::before{border-color:var(--accent);border-top-style:dashed;border-width:2px}
h3.spaced{margin-top:1.4rem}.scroll{overflow-x:auto}.number{text-align:right;font-variant-numeric:tabular-nums}
.candidates{min-width:34rem}.candidates td,.candidates th{overflow-wrap:normal;padding-right:1rem}
.candidates td.outcome{min-width:11rem}.facts+.figures,.scroll+.figures{margin-top:1.2rem}
.frame.tall .plot{height:17rem}
.curve.first{stroke:var(--wide);stroke-width:3}.curve.second{stroke:var(--thin);stroke-width:2}
.curve.limit{stroke:var(--bad);stroke-width:1.6;stroke-dasharray:6 4}.never{fill:var(--bad);fill-opacity:.12}
.key.first::before{border-color:var(--wide)}.key.second::before{border-color:var(--thin)}
.key.limit::before{border-color:var(--bad);border-top-style:dashed;border-width:2px}
.dot{position:absolute;width:.6rem;height:.6rem;margin:0 0 -.3rem -.3rem;border-radius:50%;border:2px solid var(--accent);
background:var(--card)}
.dot.ours{background:var(--good);border-color:var(--good);width:.8rem;height:.8rem;margin:0 0 -.4rem -.4rem}
.dot b{position:absolute;left:1rem;top:50%;transform:translateY(-50%);white-space:nowrap;font-weight:500;font-size:.8rem}
.dot b.flip{left:auto;right:1rem}
.dot.ours b,.dot.ours b.flip{font-weight:700;left:50%;right:auto;top:115%;transform:translateX(-50%)}
.dot b{text-shadow:0 0 3px var(--card),0 0 3px var(--card),0 0 3px var(--card)}
.maps{display:grid;gap:.2rem 1.4rem;grid-template-columns:repeat(auto-fit,minmax(10rem,1fr))}
.curve.ours{stroke:var(--good);stroke-width:5}.key.ours::before{border-color:var(--good);border-width:5px}
.dot.apriori{border-color:var(--good)}
.heads{display:grid;grid-template-columns:repeat(auto-fill,minmax(11rem,1fr));gap:1rem}
.heads.few{grid-template-columns:1fr}
.head h4{margin:0 0 .2rem;font-size:.85rem}.head .at{margin:.4rem 0 .15rem;font-size:.78rem;color:var(--quiet);
overflow-wrap:anywhere}
.bars,.cells{font-size:.75rem;table-layout:fixed}.bars th{width:4.6rem;text-align:right;padding-right:.5rem}
.bars td.number{width:3rem;white-space:nowrap}.bars td,.bars th{border:0;padding-top:.06rem;padding-bottom:.06rem}
.bars i{display:block;height:.7rem;background:var(--accent);min-width:1px}
.cells th,.cells td{padding:.1rem;border:0;text-align:center;font-size:.7rem;overflow-wrap:normal}
.cells th:first-child{width:3.2rem}
.cells td{border:1px solid var(--line);height:1.3rem;padding:0}
.cells i{display:block;width:100%;height:100%;min-height:1.3rem;background:var(--accent)}
details{margin:.6rem 0}summary{cursor:pointer}
table{border-collapse:collapse;font-size:.9rem;width:100%}
td,th{border-bottom:1px solid var(--line);padding:.3rem .6rem .3rem 0;text-align:left;vertical-align:top;
overflow-wrap:anywhere}
th{font-weight:500;color:var(--quiet);white-space:nowrap}
pre{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.7rem 1rem;overflow-x:auto;
font-size:.9rem}
@media (max-width:34rem){main{padding:1.2rem .8rem 3rem}.claim{padding:.9rem 1rem}.claim .sentence{font-size:1.08rem}
figure{padding:.8rem .7rem}.frame{grid-template-columns:2.9rem 1fr}.legend,.keys{margin-left:2.9rem}}
@media print{body{background:#fff}figure,.claim{break-inside:avoid}}
"""
