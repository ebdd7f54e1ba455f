// Every text that can be seen, with its contrast against what lies behind it: [{text, ratio, colour, behind}].
() => {
  const context = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgba = (colour) => {
    if (!known.has(colour)) {
      context.clearRect(0, 0, 1, 1);
      context.fillStyle = colour;
      context.fillRect(0, 0, 1, 1);
      known.set(colour, [...context.getImageData(0, 0, 1, 1).data].map((value) => value / 255));
    }
    return known.get(colour);
  };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
  const behind = (element) => {
    if (!element) return rgba(getComputedStyle(document.body).backgroundColor).slice(0, 3);
    const svg = element.closest("svg");
    if (svg) return over(rgba(getComputedStyle(svg.querySelector("path")).fill), behind(svg.parentElement));
    const own = rgba(getComputedStyle(element).backgroundColor);
    return own[3] === 1 ? own.slice(0, 3) : over(own, behind(element.parentElement));
  };
  const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const light = (colour) => colour.map(linear).reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.data.trim();
    if (!text || element.closest("script, style, title, desc, .sr") || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const ground = behind(element);
    const colour = over(rgba(element.closest("svg") ? style.fill : style.color), ground);
    const [dark, bright] = [light(ground), light(colour)].sort((one, other) => one - other);
    found.push({ text: text.slice(0, 40), ratio: (bright + 0.05) / (dark + 0.05), colour: style.color, where: element.className?.baseVal ?? element.className });
  }
  return found;
}
