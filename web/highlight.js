// highlight.js - colours for code: a list of [kind, text]. Each rule is a sticky expression without backtracking traps.

const NUMBER = /(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?)[jLn]?/y;
const NAME = /[\p{L}_$][\p{L}\p{N}_$]*/uy;
const words = (text) => new Set(text.split(" "));

const PYTHON = {
	rules: [
		["comment", /#[^\n]*/y],
		["string", /[rRbBfFuU]{0,2}(?:"""(?:[^"\\]|\\[\s\S]|"(?!""))*(?:"""|$)|'''(?:[^'\\]|\\[\s\S]|'(?!''))*(?:'''|$)|"(?:[^"\\\n]|\\[\s\S])*"?|'(?:[^'\\\n]|\\[\s\S])*'?)/y],
		["meta", /@[\w.]+/y],
		["number", NUMBER],
	],
	keywords: words("and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield"),
	constants: words("True False None self"),
};
const R = {
	rules: [
		["comment", /#[^\n]*/y],
		["string", /"(?:[^"\\]|\\[\s\S])*"?|'(?:[^'\\]|\\[\s\S])*'?/y],
		["number", NUMBER],
		["operator", /<-|->|\|>|%[^%\n]*%/y],
	],
	keywords: words("if else repeat while function for next break in return library require"),
	constants: words("TRUE FALSE NULL NA Inf NaN NA_integer_ NA_real_ NA_character_"),
};
const NODE = {
	rules: [
		["comment", /\/\/[^\n]*|\/\*(?:[^*]|\*(?!\/))*(?:\*\/|$)/y],
		["string", /"(?:[^"\\\n]|\\[\s\S])*"?|'(?:[^'\\\n]|\\[\s\S])*'?|`(?:[^`\\]|\\[\s\S])*`?/y],
		["number", NUMBER],
	],
	keywords: words("async await break case catch class const continue default delete do else export extends finally for from function if import in instanceof let new of return static super switch throw try typeof var void while yield"),
	constants: words("true false null undefined NaN Infinity this console"),
};
const SH = {
	rules: [
		["comment", /#[^\n]*/y],
		["string", /"(?:[^"\\]|\\[\s\S])*"?|'[^']*'?/y],
		["meta", /\$(?:\{[^}\n]*\}?|\w+|[?#@*!$-])/y],
		["number", /\d+\b/y],
	],
	keywords: words("if then else elif fi for while until do done case esac in function return exit export local set unset trap source"),
	constants: words("echo cd cat grep sed awk printf test read true false ls mkdir rm cp mv"),
};
const JSON_RULES = {
	rules: [
		["key", /"(?:[^"\\\n]|\\.)*"(?=\s*:)/y],
		["string", /"(?:[^"\\\n]|\\.)*"?/y],
		["number", /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y],
	],
	keywords: new Set(),
	constants: words("true false null"),
};
const GRAMMARS = { python: PYTHON, r: R, node: NODE, sh: SH, pod: SH, json: JSON_RULES };
const MAX = 100000;

function nextToken(grammar, text, at) {
	for (const [kind, rule] of grammar.rules) {
		rule.lastIndex = at;
		const found = rule.exec(text);
		if (found && found[0]) return [kind, found[0]];
	}
	NAME.lastIndex = at;
	const name = NAME.exec(text)?.[0];
	if (!name) return ["", text[at]];
	if (grammar.keywords.has(name)) return ["keyword", name];
	if (grammar.constants.has(name)) return ["constant", name];
	return [text[at + name.length] === "(" ? "function" : "", name];
}

/** The tokens of a text; neighbours of one kind are one. A very long text has one token. */
export function tokens(language, text) {
	const grammar = GRAMMARS[language];
	if (!grammar || text.length > MAX) return [["", text]];
	const list = [];
	for (let at = 0; at < text.length;) {
		const [kind, part] = nextToken(grammar, text, at);
		const last = list.at(-1);
		if (last && last[0] === kind) last[1] += part;
		else list.push([kind, part]);
		at += part.length;
	}
	return list;
}

/** Fills an element with the coloured text. */
export function paint(element, language, text) {
	element.replaceChildren(...tokens(language, text).map(([kind, part]) => {
		if (!kind) return document.createTextNode(part);
		const span = document.createElement("span");
		span.className = `t-${kind}`;
		span.textContent = part;
		return span;
	}));
}
