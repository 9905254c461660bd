// examples.js - code to begin with.

export const EXAMPLES = {
	python: [
		["Hello", "import platform\n\nprint(\"Hello from\", platform.python_implementation(), platform.python_version())\nsum(n * n for n in range(10))\n"],
		["A plot", "import numpy as np\nimport matplotlib.pyplot as plt\n\nx = np.linspace(0, 4 * np.pi, 400)\nfig, ax = plt.subplots(figsize=(7, 3.6))\nfor k in (1, 2, 3):\n    ax.plot(x, np.sin(k * x) / k, label=f\"k = {k}\")\nax.legend()\nax.set_title(\"Partial waves\")\nplt.show()\n"],
		["A table", "import pandas as pd\n\npd.DataFrame({\n    \"city\": [\"Ghent\", \"Porto\", \"Turku\", \"Lviv\"],\n    \"people\": [265000, 232000, 197000, 717000],\n    \"river\": [\"Scheldt\", \"Douro\", \"Aura\", None],\n})\n"],
		["Output as it comes", "import time\n\nfor i in range(1, 11):\n    print(f\"step {i} of 10\", flush=True)\n    time.sleep(0.2)\n"],
		["Something denied", "# The policy names the programs that Python may start.\nimport subprocess\n\nsubprocess.run([\"git\", \"--version\"], check=True)\n"],
	],
	r: [
		["A model", "fit <- lm(mpg ~ wt, data = mtcars)\nprint(coef(fit))\nhead(mtcars, 4)\n"],
		["A plot", "plot(mtcars$wt, mtcars$mpg, pch = 19, col = \"steelblue\", xlab = \"weight\", ylab = \"miles per gallon\")\nabline(lm(mpg ~ wt, data = mtcars), col = \"firebrick\")\n"],
	],
	node: [
		["Hello", "const primes = [];\nfor (let n = 2; primes.length < 20; n++) {\n  if (primes.every((p) => n % p)) primes.push(n);\n}\nconsole.log(\"Node\", process.version);\nprimes;\n"],
		["Output as it comes", "for (let i = 1; i <= 10; i++) {\n  console.log(`step ${i} of 10`);\n  await new Promise((done) => setTimeout(done, 200));\n}\n"],
	],
	sh: [
		["Files", "printf 'b\\na\\nc\\n' > list.txt\nsort list.txt\nls -l\n"],
		["Where am I?", "id\nuname -sr\ndf -h . | tail -1\n"],
	],
	pod: [["Files", "printf 'b\\na\\nc\\n' > list.txt\nsort list.txt\nls -l\n"]],
};

export const TOOLS = [
	{ name: "send_mail", description: "Sends a mail.", args: { to: "string", subject: "string" }, approval: true },
];
