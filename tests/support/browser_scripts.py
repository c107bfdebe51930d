"""What a page is asked for: scripts that measure it as it is laid out and coloured."""

from __future__ import annotations

COMMON = """
const told = (el, more) =>
    `${el.tagName.toLowerCase()}.${el.getAttribute("class") || ""} ` +
    `"${(el.textContent || "").trim().slice(0, 40)}" ${more}`;
const scroller = (el) => {
    for (let up = el.parentElement; up; up = up.parentElement)
        if (["auto", "scroll"].includes(getComputedStyle(up).overflowX)) return up;
    return null;
};
const drawn = (el) => {
    const box = el.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && el.checkVisibility({visibilityProperty: true})
        && !el.closest("defs");
};
const texts = (svg) => [...svg.querySelectorAll("text")].filter(drawn);
"""

OVERFLOW = """(paper) => {
    const found = [], root = document.documentElement, width = root.clientWidth;
    if (root.scrollWidth > width) found.push(`the page is ${root.scrollWidth} of ${width} px wide`);
    for (const el of document.body.querySelectorAll("*")) {
        if (!drawn(el) || el.closest(".skip")) continue;
        const box = el.getBoundingClientRect(), style = getComputedStyle(el);
        const beyond = box.right > width + 0.5 || box.left < -0.5;
        const wide = el.scrollWidth > el.clientWidth + 1 && !el.closest("svg");
        const hides = ["hidden", "clip"].includes(style.overflowX);
        const scrolls = ["auto", "scroll"].includes(style.overflowX);
        if (wide && (hides || (paper && scrolls))) found.push(told(el, "cuts what it holds"));
        if (wide && scrolls && !paper && el.tabIndex < 0) found.push(told(el, "has no focus"));
        if (beyond && (paper || !scroller(el)))
            found.push(told(el, `lies from ${box.left} to ${box.right} of ${width} px`));
    }
    return found;
}"""

TEXTS = """() => {
    const found = [];
    for (const svg of document.querySelectorAll("svg")) {
        const whole = svg.getBoundingClientRect();
        const all = texts(svg).map((el) => [el, el.getBoundingClientRect()]);
        for (const [el, box] of all)
            if (box.right > whole.right + 1 || box.left < whole.left - 1)
                found.push(told(el, "leaves its picture"));
        all.sort((one, other) => one[1].top - other[1].top);
        all.forEach(([one, a], index) => {
            for (const [other, b] of all.slice(index + 1)) {
                if (b.top > a.bottom) break;
                const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
                const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
                if (across > 2 && down > 5) found.push(told(one, told(other, "lies over it")));
            }
        });
    }
    return found;
}"""

CONTRAST = """(least) => {
    const rgba = (text) => {
        const parts = (text.match(/[\\d.]+/g) || []).map(Number);
        const scale = text.startsWith("color(") ? 255 : 1;
        return [...parts.slice(0, 3).map((part) => part * scale), parts[3] ?? 1];
    };
    const over = (top, below, opacity = 1) =>
        below.map((part, i) => i < 3 ? part + (top[i] - part) * top[3] * opacity : 1);
    const luminance = (colour) => {
        const [r, g, b] = colour.map((part) =>
            part <= 10.31 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ground = (el) => {
        const up = [];
        for (let one = el; one; one = one.parentElement) up.unshift(one);
        const dark = matchMedia("(prefers-color-scheme: dark)").matches;
        let colour = dark && getComputedStyle(document.documentElement).colorScheme.includes("dark")
            ? [18, 18, 18, 1] : [255, 255, 255, 1];
        for (const one of up) colour = over(rgba(getComputedStyle(one).backgroundColor), colour);
        return colour;
    };
    const found = new Map();
    for (const svg of document.querySelectorAll("svg")) {
        const page = ground(svg);
        const shapes = [...svg.querySelectorAll("rect, text")].filter(drawn)
            .map((el) => [el, el.getBoundingClientRect(), getComputedStyle(el)]);
        shapes.forEach(([el, box, style], index) => {
            if (el.tagName !== "text" || !el.textContent.trim()) return;
            const fill = rgba(style.fill);
            const halo = style.paintOrder.startsWith("stroke") && style.stroke !== "none"
                && parseFloat(style.strokeWidth) >= 3;
            const y = (box.top + box.bottom) / 2;
            const under = shapes.slice(0, index).filter(([shape, area, look]) =>
                shape.tagName === "rect" && y >= area.top && y <= area.bottom
                && look.fill !== "none");
            for (const x of [box.left + 1, (box.left + box.right) / 2, box.right - 1]) {
                let below = page;
                for (const [, area, look] of under) {
                    if (x < area.left || x > area.right) continue;
                    if (look.fill.startsWith("url")) {
                        if (!halo) found.set(told(el, "lies on a pattern"), 1);
                        continue;
                    }
                    below = over(rgba(look.fill), below, Number(look.fillOpacity));
                }
                if (halo) below = over(rgba(style.stroke), below);
                const seen = luminance(over(fill, below, Number(style.fillOpacity)));
                const back = luminance(below);
                const ratio = (Math.max(seen, back) + 0.05) / (Math.min(seen, back) + 0.05);
                if (ratio < least) found.set(told(el, `has contrast ${ratio.toFixed(2)}`), 1);
            }
        });
    }
    return [...found.keys()];
}"""
