"""A server made with FastMCP that has prompts, templates and resources, with completions."""

from mcp.server.fastmcp import FastMCP
from mcp.types import Completion

server = FastMCP("library")


@server.resource("library://catalog", title="Catalog", mime_type="application/json")
def catalog() -> str:
    """All books."""
    return '["1984", "Emma"]'


@server.resource("library://books/{title}")
def book(title: str) -> str:
    """One book."""
    return f"The text of {title}."


@server.resource("library://shelves/{shelf}/{place}", mime_type="text/plain")
def place(shelf: str, place: str) -> str:
    """A place on a shelf."""
    return f"{shelf}: {place}"


@server.prompt(title="Review")
def review(title: str, tone: str = "kind") -> str:
    """Asks for a review of a book."""
    return f"Write a {tone} review of {title}."


@server.completion()
async def complete(reference, argument, context):
    books = ["1984", "Emma"]
    return Completion(values=[book for book in books if book.startswith(argument.value)])


server.run()
