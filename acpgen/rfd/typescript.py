"""Parse the TypeScript of an RFD by recursive descent: what describes data is understood, all else is listed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from acpgen.rfd.syntax import (
    AllOf,
    ArrayOf,
    Constant,
    Declaration,
    Keyword,
    Member,
    NotUnderstood,
    OneOf,
    Problem,
    Record,
    Reference,
    TypeNode,
    nests_deeper,
)
from acpgen.rfd.tokens import Token, TokenKind, doc_of, is_elision, tokenize

MAX_DEPTH = 30
"""Nesting of types; those of real texts stay below 5."""

_KEYWORDS = frozenset({"string", "number", "boolean", "null", "undefined", "unknown", "any", "object", "never", "void"})
_OPENING, _CLOSING = frozenset("{[("), frozenset("}])")
_EXCERPT = 80


class _NotUnderstoodError(Exception):
    """Something that the parser does not understand; caught where it can go on."""

    def __init__(self, message: str, token: Token) -> None:
        super().__init__(message)
        self.problem = Problem(message, token.start)


def parse_typescript(text: str) -> tuple[tuple[Declaration, ...], tuple[Problem, ...]]:
    """The declarations in `text`, and everything in it that was not understood, both in the order of the text."""
    parser = _Parser(text)
    parser.run()
    return tuple(parser.declarations), tuple(sorted(parser.problems, key=lambda problem: problem.start))


class _Parser:
    """The state of a run: the tokens, where it stands, and what it has found."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.index = 0
        self.declarations: list[Declaration] = []
        self.problems: list[Problem] = []

    # --- Tokens ---

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def next(self) -> Token:
        token = self.token
        self.index = min(self.index + 1, len(self.tokens) - 1)
        return token

    def at(self, *texts: str) -> bool:
        return self.token.text in texts and self.token.kind in (TokenKind.SIGN, TokenKind.NAME)

    def take(self, text: str) -> bool:
        found = self.at(text)
        if found:
            self.next()
        return found

    def expect(self, text: str) -> Token:
        if not self.at(text):
            raise self.unexpected(f"`{text}`")
        return self.next()

    def name(self) -> str:
        if self.token.kind is not TokenKind.NAME:
            raise self.unexpected("a name")
        return self.next().text

    def unexpected(self, wanted: str) -> _NotUnderstoodError:
        found = f"`{self.token.text[:_EXCERPT]}`" if self.token.text else self.token.kind.value
        return _NotUnderstoodError(f"expected {wanted}, found {found}", self.token)

    def too_deep(self) -> _NotUnderstoodError:
        return _NotUnderstoodError(f"types nest more than {MAX_DEPTH} deep", self.token)

    @property
    def at_end(self) -> bool:
        return self.token.kind is TokenKind.END

    # --- Declarations ---

    def run(self) -> None:
        while not self.at_end:
            start = self.index
            try:
                self.declaration()
            except _NotUnderstoodError as stop:
                self.skip_declaration(start)
                self.list_skipped(stop.problem, start)

    def declaration(self) -> None:
        first = self.token
        while self.at("export", "declare", "default"):
            self.next()
        if self.at("const") and self.tokens[self.index + 1].text == "enum":
            self.next()
        parsers: dict[str, Callable[[], tuple[str, tuple[str, ...], TypeNode]]] = {
            "interface": self.interface,
            "type": self.alias,
            "enum": self.enum,
        }
        parse = parsers.get(self.token.text)
        if parse is None:
            if self.take(";"):
                return
            raise self.unexpected("`interface`, `type` or `enum`")
        self.next()
        name, bases, type_ = parse()
        end = self.tokens[self.index - 1].end
        declaration = Declaration(
            name=name, type=type_, bases=bases, doc=doc_of(first.comments), start=first.start, end=end
        )
        self.declarations.append(declaration)

    def skip_declaration(self, start: int) -> None:
        """Go on with the next declaration: the next word that begins one, outside of brackets."""
        self.index = max(self.index, start)
        if self.index == start:
            self.next()
        depth = 0
        for token in self.tokens[start : self.index]:
            depth += (token.text in _OPENING) - (token.text in _CLOSING)
        while not self.at_end:
            starts = self.token.starts_line and self.at("export", "declare", "interface", "type", "enum")
            if starts and depth <= 0:
                return
            depth += self.at(*_OPENING) - self.at(*_CLOSING)
            self.next()

    def list_skipped(self, problem: Problem, start: int) -> None:
        """List the problem for which everything from the token `start` up to here is passed over."""
        skipped = (self.tokens[start].start, self.tokens[self.index - 1].end)
        self.problems.append(replace(problem, skipped=skipped))

    def interface(self) -> tuple[str, tuple[str, ...], TypeNode]:
        name = self.name()
        self.no_parameters()
        bases: list[str] = []
        if self.take("extends"):
            bases.append(self.name())
            self.no_parameters()
            while self.take(","):
                bases.append(self.name())
                self.no_parameters()
        return name, tuple(bases), self.record(0)

    def alias(self) -> tuple[str, tuple[str, ...], TypeNode]:
        name = self.name()
        self.no_parameters()
        self.expect("=")
        type_ = self.union(0)
        if not self.take(";") and not self.token.starts_line:
            raise self.unexpected("`;`")
        trailing = doc_of(self.tokens[self.index - 1].trailing)
        if isinstance(type_, OneOf) and type_.docs and not type_.docs[-1]:
            type_ = replace(type_, docs=(*type_.docs[:-1], trailing))
        return name, (), type_

    def enum(self) -> tuple[str, tuple[str, ...], TypeNode]:
        name = self.name()
        self.expect("{")
        members: list[TypeNode] = []
        docs: list[str] = []
        while not self.at("}"):
            docs.append(doc_of(self.token.comments))
            self.name()
            if not self.take("="):
                raise _NotUnderstoodError(f"the enum {name} does not say which values are sent", self.token)
            members.append(self.constant())
            if not self.take(","):
                break
        self.expect("}")
        return name, (), OneOf(tuple(members), tuple(docs), is_elided=False)

    def no_parameters(self) -> None:
        if self.at("<"):
            raise _NotUnderstoodError("a type with parameters has no counterpart in a schema", self.token)

    # --- Objects ---

    def record(self, depth: int) -> Record:
        is_elided = is_elision(self.expect("{").trailing)
        members: list[Member] = []
        values: TypeNode | None = None
        while not self.at("}"):
            if self.at_end:
                raise self.unexpected("`}`")
            is_elided |= is_elision(self.token.comments)
            if self.take("...") or self.take(";") or self.take(","):
                is_elided |= self.tokens[self.index - 1].text == "..."
            elif self.at("["):
                values = self.index_signature(depth)
            else:
                member, trailing = self.member(depth), self.tokens[self.index - 1].trailing
                is_elided |= is_elision(trailing)
                if member is not None:
                    members.append(member if member.doc else replace(member, doc=doc_of(trailing)))
        is_elided |= is_elision(self.token.comments)
        self.next()
        return Record(members=tuple(members), values=values, is_elided=is_elided)

    def index_signature(self, depth: int) -> TypeNode | None:
        start = self.index
        try:
            self.next()
            self.name()
            self.expect(":")
            self.expect("string")
            self.expect("]")
            self.expect(":")
            type_ = self.union(depth + 1)
            self.end_of_member()
        except _NotUnderstoodError as stop:
            self.skip_member(start)
            self.list_skipped(stop.problem, start)
            return None
        return type_

    def member(self, depth: int) -> Member | None:
        """The member that begins here; None where what stands here has no name, which is listed alone."""
        start, first = self.index, self.token
        try:
            if self.at("readonly") and self.tokens[self.index + 1].text not in (":", "?"):
                self.next()
            name = self.property_name()
            is_optional = self.take("?")
            if self.at("(", "<"):
                raise _NotUnderstoodError(f"{name} is a function, which nothing sends", self.token)
            self.expect(":")
            type_ = self.union(depth + 1)
            self.end_of_member()
        except _NotUnderstoodError as stop:
            text = self.skip_member(start)
            if first.kind not in (TokenKind.NAME, TokenKind.STRING):
                self.list_skipped(stop.problem, start)
                return None
            self.problems.append(stop.problem)
            return Member(
                name=first.text.strip("\"'"),
                type=NotUnderstood(text, first.start),
                is_optional=self.tokens[start + 1].text == "?",
                doc=doc_of(first.comments),
                start=first.start,
            )
        return Member(name=name, type=type_, is_optional=is_optional, doc=doc_of(first.comments), start=first.start)

    def property_name(self) -> str:
        if self.token.kind is TokenKind.STRING:
            return self.string()
        return self.name()

    def end_of_member(self) -> None:
        if self.take(";") or self.take(",") or self.at("}") or self.token.starts_line:
            return
        raise self.unexpected("`;`")

    def skip_member(self, start: int) -> str:
        """Go behind the member that begins at `start`, and give its text."""
        self.index, depth = start, 0
        while not self.at_end:
            if depth == 0 and (self.at("}") or (self.index > start and self.at(";", ","))):
                break
            if depth == 0 and self.index > start and self.token.starts_line and not self.at("|", "&"):
                break
            depth += self.at(*_OPENING) - self.at(*_CLOSING)
            self.next()
        text = self.text[self.tokens[start].start : self.tokens[self.index - 1].end]
        return " ".join(text[:_EXCERPT].split())

    # --- Types ---

    def union(self, depth: int) -> TypeNode:
        if depth > MAX_DEPTH:
            raise self.too_deep()
        members: list[TypeNode] = []
        docs: list[str] = []
        is_elided, before = False, self.token.comments if self.at("|") else ()
        self.take("|")
        while True:
            comments = (*before, *self.token.comments)
            is_elided |= is_elision(comments)
            if self.take("..."):
                is_elided = True
            else:
                members.append(self.intersection(depth))
                docs.append(doc_of(comments) or doc_of(self.tokens[self.index - 1].trailing))
            before = self.token.comments
            if not self.take("|"):
                break
        if not members:
            raise self.unexpected("a type")
        return members[0] if len(members) == 1 and not is_elided else OneOf(tuple(members), tuple(docs), is_elided)

    def intersection(self, depth: int) -> TypeNode:
        self.take("&")
        parts = [self.postfix(depth)]
        while self.take("&"):
            parts.append(self.postfix(depth))
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def postfix(self, depth: int) -> TypeNode:
        while self.at("readonly"):
            self.next()
        found = self.primary(depth)
        while not self.token.starts_line and self.take("["):
            if not self.take("]"):
                raise _NotUnderstoodError("the type of a property of another type is not followed", self.token)
            found = ArrayOf(found)
            if nests_deeper(found, MAX_DEPTH):
                raise self.too_deep()
        return found

    def primary(self, depth: int) -> TypeNode:
        token = self.token
        if self.at("{"):
            return self.record(depth + 1)
        if self.at("("):
            self.next()
            found = self.union(depth + 1)
            self.expect(")")
            if self.at("=>"):
                raise _NotUnderstoodError("a function is nothing that can be sent", self.token)
            return found
        if token.kind is TokenKind.NAME and token.text not in ("true", "false"):
            return self.named(depth)
        return self.constant()

    def named(self, depth: int) -> TypeNode:
        if self.at("keyof", "typeof", "infer", "unique", "asserts", "new"):
            raise _NotUnderstoodError(f"`{self.token.text}` has no counterpart in a schema", self.token)
        if self.token.starts_line and self.at("export", "declare", "interface", "enum"):
            raise self.unexpected("a type")
        token = self.next()
        if self.at("."):
            raise _NotUnderstoodError("names with dots are not followed", self.token)
        arguments: list[TypeNode] = []
        if self.take("<"):
            arguments.append(self.union(depth + 1))
            while self.take(","):
                arguments.append(self.union(depth + 1))
            self.expect(">")
        if token.text in _KEYWORDS and not arguments:
            return Keyword(token.text)
        return Reference(token.text, tuple(arguments), token.start)

    def constant(self) -> TypeNode:
        if self.token.kind is TokenKind.STRING:
            return Constant(self.string())
        if self.at("true", "false"):
            return Constant(self.next().text == "true")
        sign = -1 if self.take("-") else 1
        if self.token.kind is TokenKind.NUMBER:
            token = self.next()
            if token.text.isdecimal() and len(token.text) < 16:
                return Constant(sign * int(token.text))
            raise _NotUnderstoodError("only whole numbers below 10^15 can be constants", token)
        raise self.unexpected("a type")

    def string(self) -> str:
        token = self.next()
        inner = token.text[1:-1]
        if len(token.text) < 2 or token.text[-1] != token.text[0]:
            raise _NotUnderstoodError("a string that does not end", token)
        if token.text[0] == "'":
            inner = inner.replace("\\'", "'").replace('"', '\\"')
        try:
            found = json.loads(f'"{inner}"', strict=False)
            found.encode()
        except (ValueError, UnicodeEncodeError):
            raise _NotUnderstoodError("a string with an escape that is not JSON's", token) from None
        return str(found)
