"""The page's style sheet: one set of colours for light, one for dark; nothing is loaded from anywhere."""

from __future__ import annotations

from streamql.cli.html.markup import Markup

_LIGHT = (
    "--page:#f6f7f9;--card:#ffffff;--ink:#1a2027;--soft:#5b6672;--faint:#8a949f;--rule:#e1e5ea;--grid:#edf0f3;"
    "--line:#2f6fd0;--area:#2f6fd01f;--insert:#2a9d76;--before:#e5b567;--after:#d08a1d;--delete:#c9483b;--other:#7c8fb0;"
    "--bad:#b42318;--badbg:#fdecea;--warn:#8f5a00;--warnbg:#fdf3dc;--good:#1c7a55;--goodbg:#e3f4ec;--busy:#1f5fae;--busybg:#e5eefb;"
    "--none:#5b6672;--nonebg:#eceff2"
)
_DARK = (
    "--page:#12161b;--card:#1a2027;--ink:#e6eaee;--soft:#a3adb8;--faint:#7d8894;--rule:#2c343d;--grid:#242b33;"
    "--line:#6ea3f5;--area:#6ea3f52b;--insert:#48b98f;--before:#b58d4a;--after:#e3a53c;--delete:#e27063;--other:#8c9fc2;"
    "--bad:#ff9b8f;--badbg:#43201d;--warn:#f0c069;--warnbg:#3b2f16;--good:#7cd3ae;--goodbg:#17352a;--busy:#9cc2fb;--busybg:#1b2f4b;"
    "--none:#a3adb8;--nonebg:#262d35"
)

STYLE = Markup(
    f":root{{color-scheme:light dark;{_LIGHT}}}"
    f"@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}"
    r"""
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif}
main{max-width:1200px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:24px;margin:0 0 2px;letter-spacing:-.01em}
h2{font-size:17px;margin:34px 0 10px}
p{margin:0 0 10px}
.quiet,.sub{color:var(--soft)}
.sub{font-size:14px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:10px;margin:20px 0 0}
.tile{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:12px 14px}
.tile b{display:block;font-size:24px;font-weight:600;line-height:1.2;font-variant-numeric:tabular-nums}
.tile span{color:var(--soft);font-size:13px}
.tile.bad b{color:var(--bad)}
.card{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:14px 16px}
.scroll{overflow:auto;max-height:min(75vh,680px)}
.tiles+.card{margin-top:24px}
.flush{padding:0}
table{border-collapse:collapse;width:100%;font-size:14px}
th,td{text-align:left;padding:8px 10px;border-bottom:1px solid var(--rule);vertical-align:top;white-space:nowrap}
thead th{position:sticky;top:0;background:var(--card);color:var(--soft);font-weight:500;font-size:13px;z-index:1}
tbody tr:last-child td{border-bottom:0}
td.num,th.num{text-align:right;font-variant-numeric:tabular-nums}
td a{color:inherit;text-decoration-color:var(--faint);text-underline-offset:3px}
td.name{font-weight:500;max-width:300px;overflow:hidden;text-overflow:ellipsis}
td.says,td.into{max-width:210px;overflow:hidden;text-overflow:ellipsis;color:var(--soft)}
.pill{display:inline-block;border-radius:99px;padding:1px 9px;font-size:12.5px;font-weight:500;color:var(--none);background:var(--nonebg)}
.pill.bad,.pill.late{color:var(--bad);background:var(--badbg)}
.pill.warn,.pill.soon{color:var(--warn);background:var(--warnbg)}
.pill.busy{color:var(--busy);background:var(--busybg)}
.pill.good,.pill.fine{color:var(--good);background:var(--goodbg)}
ul.troubles{list-style:none;margin:0;padding:0;display:grid;gap:8px}
ul.troubles li{border-left:3px solid var(--bad);background:var(--badbg);border-radius:0 8px 8px 0;padding:8px 12px;overflow-wrap:anywhere}
ul.troubles li.warn{border-color:var(--warn);background:var(--warnbg)}
ul.troubles b{font-weight:600}
.forecast{display:grid;grid-template-columns:minmax(90px,max-content) 1fr max-content;gap:8px 14px;align-items:center;font-size:14px}
.forecast div{display:contents}
.forecast .name{max-width:280px;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.forecast .bar{background:var(--grid);border-radius:4px;height:12px;min-width:60px}
.forecast i{display:block;height:12px;border-radius:4px;background:var(--line)}
.forecast i.soon{background:var(--after)}.forecast i.gone{background:var(--delete)}
.forecast .when{color:var(--soft);font-variant-numeric:tabular-nums}
.forecast .when.soon{color:var(--warn)}.forecast .when.gone{color:var(--bad)}
details.stream{background:var(--card);border:1px solid var(--rule);border-radius:10px;margin:0 0 10px}
details.stream>summary{cursor:pointer;padding:11px 16px;display:flex;gap:6px 12px;align-items:baseline;flex-wrap:wrap}
details.stream>summary::before{content:"\25B8";color:var(--faint)}details.stream[open]>summary::before{content:"\25BE"}
details.stream>summary b{font-weight:600;overflow-wrap:anywhere;max-width:calc(100% - 26px)}
details.stream>summary .sub{margin-left:auto}
.inside{padding:2px 16px 14px}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(290px,1fr));gap:10px 26px}
.charts h3{font-size:13px;font-weight:500;color:var(--soft);margin:4px 0 2px}
figure{margin:0}
svg{display:block;width:100%;height:auto}
svg text{font:11px system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif;fill:var(--soft)}
.end{text-anchor:end}.middle{text-anchor:middle}
.grid{stroke:var(--grid)}.axis{stroke:var(--faint)}
.line{fill:none;stroke:var(--line);stroke-width:1.5;stroke-linejoin:round}
.area{fill:var(--area)}
.peak{stroke:var(--line);stroke-width:4.5;stroke-linecap:round}
.now{fill:var(--card);stroke:var(--line);stroke-width:2}
.failed{fill:var(--delete)}
.insert{fill:var(--insert)}.before{fill:var(--before)}.after{fill:var(--after)}.delete{fill:var(--delete)}.other{fill:var(--other)}
.hover{fill:var(--ink);opacity:0}.hover:hover{opacity:.07}
.legend{display:flex;flex-wrap:wrap;gap:4px 14px;font-size:12.5px;color:var(--soft);margin:8px 0 0}
.legend i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px}
.legend .insert{background:var(--insert)}.legend .before{background:var(--before)}.legend .after{background:var(--after)}
.legend .delete,.legend .failed{background:var(--delete)}.legend .other{background:var(--other)}.legend .line{background:var(--line)}
.legend .failed{clip-path:polygon(50% 0,0 100%,100% 100%)}
.box rect{fill:var(--card);stroke:var(--rule);stroke-width:1.2}
.box text{font-size:13px;fill:var(--ink)}
.box circle{fill:var(--faint)}
.box.good circle,.box.fine circle{fill:var(--insert)}.box.busy circle{fill:var(--line)}.box.warn circle{fill:var(--after)}
.box.bad circle{fill:var(--delete)}
.box:hover rect{stroke:var(--line)}
.box.task rect{stroke-dasharray:5 3}
.box text.lag{font-size:11.5px;fill:var(--soft)}
.box.late text.lag{fill:var(--bad);font-weight:600}
.edge{fill:none;stroke:var(--faint);opacity:.55}.edge:hover{stroke:var(--line);opacity:1}
.edge.order{stroke-dasharray:1 5;stroke-linecap:round;opacity:.9}
.edge.broken{stroke:var(--delete);stroke-dasharray:4 4}
footer{margin-top:36px;color:var(--faint);font-size:13px}
@media (max-width:640px){main{padding:18px 12px 40px}.tile b{font-size:20px}.forecast{grid-template-columns:1fr}
.forecast div{display:grid;grid-template-columns:1fr max-content;gap:3px 10px}.forecast .bar{grid-row:2;grid-column:1/3}
.forecast .name{max-width:48vw}.forecast .when{font-size:13px}details.stream>summary .sub{margin-left:0;width:100%}
.inside{padding:2px 10px 12px}svg text{font-size:12px}}
@media print{details.stream{break-inside:avoid}.scroll{max-height:none}}
"""
)
