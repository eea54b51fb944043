"""What the Gemini CLI's log does not hold, taken from served bodies: the head, and signatures."""

from __future__ import annotations

import json

from ctxscope.agents import at_hand, gemini
from ctxscope.model import Body, Config, Learned, Point, Rebuilt
from tests.gemini_cases import HEAD, Chat, body_of, contents, learned_for, sent_call, sent_result

SYNTHETIC = "skip_thought_signature_validator"
ASKED = {"parts": [{"text": "<session_context>\nA port.\n</session_context>"}, {"text": "look"}], "role": "user"}
SIGNED, OTHER = "c2lnbmVk", "b3RoZXI="


def spelled(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def chat_of_two() -> Chat:
    chat = Chat().process()
    chat.user("u1", "look")
    chat.answer("g1", "", ("c1", {}))
    chat.result("r1", "c1")
    chat.answer("g2", "", ("c2", {}))
    chat.result("r2", "c2")
    chat.answer("g3", "Seen.")
    return chat


def served_of_two(*, first: str = SIGNED, again: str = SIGNED, second: str = OTHER) -> list[Body]:
    one = [
        ASKED,
        {"parts": [sent_call("c1", signature=first)], "role": "model"},
        {"parts": [sent_result("c1")], "role": "user"},
    ]
    two = [ASKED, {"parts": [sent_call("c1", signature=again)], "role": "model"}, one[2]]
    two += [
        {"parts": [sent_call("c2", signature=second)], "role": "model"},
        {"parts": [sent_result("c2")], "role": "user"},
    ]
    return [body_of([ASKED]), body_of(one), body_of(two)]


def rebuilt(chat: Chat, bodies: list[Body]) -> list[tuple[Learned, Rebuilt]]:
    log = chat.log()
    pairs = list(zip(gemini.requests(log), bodies, strict=True))
    made = []
    for n in range(1, len(pairs) + 1):
        learned = learned_for(log, pairs[:n])
        found = gemini.rebuild(log, pairs[n - 1][0], Config(), learned)
        assert found is not None
        made.append((learned, found))
    return made


def borrowed(made: Rebuilt) -> dict[str, str]:
    return {p.path: p.provenance for p in made.pieces if p.provenance in ("learned", "echoed")}


def test_a_signature_is_echoed_where_it_stands_first_and_learned_from_then_on() -> None:
    bodies = served_of_two()
    made = rebuilt(chat_of_two(), bodies)
    assert [m.data for _, m in made] == [b.data for b in bodies]
    first, second = "/contents/1/parts/0/thoughtSignature", "/contents/3/parts/0/thoughtSignature"
    assert borrowed(made[1][1]) == {
        **dict.fromkeys(("/systemInstruction", "/tools", "/generationConfig"), "learned"),
        first: "echoed",
    }
    assert {k: v for k, v in borrowed(made[2][1]).items() if "contents" in k} == {first: "learned", second: "echoed"}
    assert made[2][0].values[second].data == b'"%s"' % OTHER.encode()
    assert first not in made[2][0].values


def test_another_signature_than_the_one_shown_before_is_a_difference() -> None:
    bodies = served_of_two(again=OTHER)
    _, last = rebuilt(chat_of_two(), bodies)[2]
    assert last.data == served_of_two()[2].data != bodies[2].data


def test_an_answer_without_a_signature_gets_the_stand_in_while_its_loop_runs() -> None:
    chat = chat_of_two()
    chat.user("u2", "again")
    chat.answer("g4", "Yes.")
    bodies = served_of_two(first=SYNTHETIC, again=SYNTHETIC, second=SYNTHETIC)
    bare = [ASKED, {"parts": [sent_call("c1")], "role": "model"}, {"parts": [sent_result("c1")], "role": "user"}]
    bare += [{"parts": [sent_call("c2")], "role": "model"}, {"parts": [sent_result("c2")], "role": "user"}]
    bare += [{"parts": [{"text": "Seen."}], "role": "model"}, {"parts": [{"text": "again"}], "role": "user"}]
    bodies.append(body_of(bare))
    made = rebuilt(chat, bodies)
    assert [m.data for _, m in made] == [b.data for b in bodies]
    assert not [path for _, m in made for path in borrowed(m) if "contents" in path]


def test_the_signature_of_a_text_is_learned_too() -> None:
    chat = Chat().process()
    chat.user("u1", "look")
    chat.answer("g1", "Seen.")
    chat.user("u2", "again")
    chat.answer("g2", "Yes.")
    answer = {"parts": [{"text": "Seen.", "thoughtSignature": SIGNED}], "role": "model"}
    bodies = [body_of([ASKED]), body_of([ASKED, answer, {"parts": [{"text": "again"}], "role": "user"}])]
    assert [m.data for _, m in rebuilt(chat, bodies)] == [b.data for b in bodies]


def test_a_changed_head_is_a_difference_and_said_where_it_was_learned() -> None:
    chat = Chat().process()
    chat.user("u1", "look")
    chat.answer("g1", "Seen.")
    chat.user("u2", "again")
    chat.answer("g2", "Yes.")
    later = [ASKED, {"parts": [{"text": "Seen."}], "role": "model"}, {"parts": [{"text": "again"}], "role": "user"}]
    bodies = [body_of([ASKED]), body_of(later, systemInstruction={"parts": [{"text": "Be long."}], "role": "user"})]
    (_, first), (learned, second) = rebuilt(chat, bodies)
    assert first.data == bodies[0].data
    assert b"Be brief." in second.data
    assert learned.choice["taught"] == "line 4"


def test_each_model_has_a_head_of_its_own() -> None:
    chat = Chat().process()
    chat.user("u1", "look")
    chat.answer("g1", "Seen.")
    chat.user("u2", "again")
    chat.answer("g2", "Yes.", model="m-2")
    later = [ASKED, {"parts": [{"text": "Seen."}], "role": "model"}, {"parts": [{"text": "again"}], "role": "user"}]
    bodies = [body_of([ASKED]), body_of(later, generationConfig={"temperature": 0})]
    made = rebuilt(chat, bodies)
    assert made[1][1].data == bodies[1].data
    assert borrowed(made[1][1])["/generationConfig"] == "echoed"


def test_the_same_calls_teach_the_same_whatever_was_asked_before() -> None:
    chat, bodies = chat_of_two(), served_of_two()
    log = chat.log()
    pairs = list(zip(gemini.requests(log), bodies, strict=True))
    in_order = [gemini.rebuild(log, pairs[n][0], Config(), learned_for(log, pairs[: n + 1])).pieces for n in range(3)]
    for n in (2, 0, 1, 2, 1, 0):
        again = gemini.rebuild(log, pairs[n][0], Config(), learned_for(log, pairs[: n + 1])).pieces
        assert again == in_order[n]
    alone = learned_for(log, pairs[2:])
    assert gemini.rebuild(log, pairs[2][0], Config(), alone).data == bodies[2].data


def many_turns(count: int) -> tuple[Chat, list[Body]]:
    """Turns of a signed call, its result and an answer, and what was served for each call."""
    chat, bodies, sent = Chat().process(), [], []
    for n in range(count):
        asked = {"parts": [{"text": f"turn {n}"}], "role": "user"}
        sent.append({**asked, "parts": [*ASKED["parts"][:1], *asked["parts"]]} if n == 0 else asked)
        chat.user(f"u{n}", f"turn {n}")
        bodies.append(body_of(sent))
        chat.answer(f"g{n}", "", (f"c{n}", {}))
        chat.result(f"r{n}", f"c{n}")
        sent.append({"parts": [sent_call(f"c{n}", signature=f"s{n}")], "role": "model"})
        sent.append({"parts": [sent_result(f"c{n}")], "role": "user"})
        bodies.append(body_of(sent))
        chat.answer(f"a{n}", f"answer {n}")
        sent.append({"parts": [{"text": f"answer {n}"}], "role": "model"})
    return chat, bodies


def test_a_long_session_asked_in_any_order_says_what_it_says_when_asked_once() -> None:
    chat, bodies = many_turns(6)
    kept = chat.log()
    order = [*range(12), 11, 3, 7, 0, 9, 5, 11]
    for n in order:
        alone = chat.log()
        made = []
        for log in (kept, alone):
            pairs = list(zip(gemini.requests(log), bodies, strict=True))
            found = gemini.rebuild(log, pairs[n][0], Config(), learned_for(log, pairs[: n + 1]))
            made.append([(p.data, p.provenance, p.path) for p in found.pieces])
        assert made[0] == made[1], n
        assert b"".join(data for data, _, _ in made[0]) == bodies[n].data


def test_a_signature_seen_late_is_not_put_into_earlier_requests() -> None:
    """The call that would have shown it was not recorded: the one after it shows it first."""
    chat, bodies = many_turns(4)
    log = chat.log()
    pairs = [p for n, p in enumerate(zip(gemini.requests(log), bodies, strict=True)) if n != 1]
    for n in (6, 1, 6, 0, 2):
        learned = learned_for(log, pairs[: n + 1])
        made = gemini.rebuild(log, pairs[n][0], Config(), learned)
        assert made.data == pairs[n][1].data
        shown = {p.path: p.provenance for p in made.pieces if p.path == "/contents/1/parts/0/thoughtSignature"}
        assert list(shown.values()) == ({0: [], 1: ["echoed"]}.get(n, ["learned"]))


def test_a_call_whose_body_is_torn_is_not_taught_by_later_ones() -> None:
    chat, bodies = many_turns(2)
    log = chat.log()
    pairs = list(zip(gemini.requests(log), bodies, strict=True))
    torn = Body(bodies[1].data[:300], "gemini", (), sha256="torn")
    pairs[1] = (pairs[1][0], torn)
    last = gemini.rebuild(log, pairs[2][0], Config(), learned_for(log, pairs[:3]))
    assert last.data == bodies[2].data
    made = gemini.rebuild(log, pairs[1][0], Config(), learned_for(log, pairs[:2]))
    assert b"thoughtSignature" not in made.data


def test_without_a_recording_the_conversation_alone_is_rebuilt_and_that_is_said() -> None:
    log = chat_of_two().log()
    point: Point = gemini.requests(log)[1]
    made = gemini.rebuild(log, point, Config(), Learned())
    assert made is not None
    assert json.loads(made.data).keys() == {"contents"}
    assert "recording" in made.notices[0]
    assert "thoughtSignature" not in contents(log, point)[1][1][0]


def test_a_request_in_the_form_of_another_endpoint_is_not_rebuilt() -> None:
    log = chat_of_two().log()
    point = gemini.requests(log)[0]
    data = spelled({"model": "m-1", "request": {"contents": [ASKED], **HEAD}})
    body = Body(data, "gemini", ())
    learned = gemini.learn(log, point, body, at_hand())
    assert gemini.rebuild(log, point, Config(), learned) is None


def test_kinds_of_requests_are_told_by_fixed_texts() -> None:
    ask = {"parts": [{"text": "Generate a new <state_snapshot> based on the provided history.\n\nGo."}], "role": "user"}
    again = {"parts": [{"text": "Critically evaluate the <state_snapshot> you just generated. Well?"}], "role": "user"}
    wants_json = {"responseJsonSchema": {"type": "object"}}
    assert gemini.classify(body_of([ASKED])) == "main"
    assert gemini.classify(body_of([ASKED, ask], tools=[])) == "compaction"
    assert gemini.classify(body_of([ASKED, again], tools=[])) == "compaction"
    assert gemini.classify(body_of([ASKED], tools=[], generationConfig=wants_json)) == "side"
    assert gemini.classify(body_of([ASKED], tools=[{"googleSearch": {}}])) == "side"
    assert gemini.classify(body_of([ASKED], tools=[])) is None
