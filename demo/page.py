from pathlib import Path
from demo.facts import Story


def write_page(story: Story, path: Path) -> None:
    path.write_text("x")
