"""The viewer's pages in a browser: what is drawn, what a click and a key do, that nothing in a rollout runs, speed."""

from __future__ import annotations

import time

import pytest

from datpo.core.saved import SavedTree
from tests.browser.trees import ATTACKS, END, grown, hostile_tree, largest_tree, plain_tree


def shown(page, selector):
    return page.locator(selector).evaluate_all("all => all.map((element) => element.textContent)")


def opened(page, folder, name="tree-0000.html", anchor=""):
    page.goto((folder / name).as_uri() + anchor)
    page.wait_for_selector("#tree .block" if name != "index.html" else ".card")


def test_the_page_draws_every_block_where_its_tokens_are(page, writer):
    opened(page, writer.pages([plain_tree(writer)]))
    assert page.locator("#tree .block").count() == 5
    boxes = [page.locator(f"#b{i} .bar").bounding_box() for i in range(5)]
    assert boxes[0]["x"] + boxes[0]["width"] == pytest.approx(boxes[1]["x"], abs=1.5)
    assert boxes[3]["x"] == pytest.approx(boxes[4]["x"], abs=0.1)
    assert boxes[2]["width"] / boxes[0]["width"] == pytest.approx(5 / 3, rel=0.05)
    assert boxes[0]["y"] < boxes[3]["y"] < boxes[4]["y"] < boxes[2]["y"]  # the second base rollout is the last row
    colours = [page.locator(f"#b{i} .bar").get_attribute("fill") for i in range(5)]
    assert colours[1] == colours[3] != colours[0] != colours[2] == colours[4]
    assert page.locator("#tree .mark.right").count() == page.locator("#tree .mark.wrong").count() == 2
    assert page.locator("#tree .cut").count() == 1
    assert page.locator("#tree .node").count() == 1
    assert shown(page, "#tree .node-value") == ["0.67"]
    assert page.title() == "Rollout tree 0"
    assert shown(page, "#title") == ["Tree 0, problem p/1"]


def test_a_click_shows_the_block(page, writer):
    opened(page, writer.pages([plain_tree(writer)]))
    page.click("#b3 .bar", force=True)
    assert shown(page, "#name") == ["Block 3: tokens 3 to 7 of branch 2"]
    # alpha is 0.2 at the start of a run: 1 - 2/3 + 0.2 x 0.5
    assert shown(page, "#credit .number") == ["+0.333", "+0.100", "+0.433"]
    assert shown(page, "#text .token") == [" is", " forty", "-two", "·"]
    facts = dict(zip(shown(page, "#facts dt"), shown(page, "#facts dd"), strict=True))
    assert facts["Value"] == "V(start) 0.667 → V(end) 1.000"
    assert facts["Reward"] == "1" and facts["Verdict"] == "right"
    assert facts["Response"] == "7 tokens, 3 of them shared"
    assert shown(page, "#before .said") == ["Six times seven"]
    assert page.url.endswith("#b3")
    # the entropies of a branch of four tokens are 0, 2/3, 4/3 and 2 nats; none is warmer than 2
    heats = page.locator("#text .token").evaluate_all("all => all.map((e) => e.style.backgroundColor)")
    assert heats[0] == "rgb(255, 255, 255)" and heats[3] == "rgb(255, 170, 60)" and len(set(heats)) == 4
    page.hover("#text .token >> nth=1")
    assert shown(page, "#readout") == ["token 4, id 13, entropy 0.667 nats, sampled with p = 0.607"]
    assert "no sentence borders in the file for this branch" in shown(page, "#heat")[0]


def test_siblings_stand_side_by_side_with_their_first_difference(page, writer):
    opened(page, writer.pages([plain_tree(writer)]))
    page.click("#b3 .bar", force=True)
    assert shown(page, ".sibling button") == ["1 (+0.38)", "3 (+0.43)", "4 (−0.67)"]
    assert shown(page, ".sibling .same") == [" is", "", ""]  # block 3 itself differs from block 4 at once
    assert shown(page, ".sibling mark") == [" 42", " is", " makes"]
    tops = page.locator(".sibling").evaluate_all("all => all.map((e) => e.getBoundingClientRect().top)")
    assert len(set(tops)) == 1
    page.click(".sibling button >> nth=2")
    assert shown(page, "#name") == ["Block 4: tokens 3 to 6 of branch 3"]


def test_fork_points_of_this_tree_and_of_other_rules(page, writer):
    opened(page, writer.pages([plain_tree(writer)]))
    page.click("#b0 .bar", force=True)
    words = page.locator("#rules svg").get_attribute("aria-label")
    # branch 0: entropies rise to its end token, the last fork lies before it; sentences start at 0 and 5
    for told in ("forked here: 3", "tok-entropy: 5", "sent-entropy: 1", "atb: needs step", "fixed-seg: 3"):
        assert told in words
    assert shown(page, "#text .chip.taken") == ["fork into 3"]
    assert "sent-entropy" in shown(page, "#text .chip:not(.taken)")
    page.click("#b1 .bar", force=True)
    assert shown(page, "#text .sentence") == ["."]


def test_keys_move_through_the_tree(page, writer):
    opened(page, writer.pages([plain_tree(writer)]), anchor="#b0")

    def after(key):
        page.keyboard.press(key)
        return page.locator("#tree").get_attribute("aria-activedescendant")

    assert after("ArrowRight") == "b1"
    assert after("ArrowDown") == "b3"
    assert after("ArrowDown") == "b4"
    assert after("ArrowDown") == "b2"  # the other base rollout
    assert after("ArrowDown") == "b2"
    assert after("ArrowUp") == "b4"
    assert after("ArrowLeft") == "b0"
    assert after("End") == "b1"
    assert after("s") == "b3"
    assert after("s") == "b4"
    assert after("s") == "b1"
    assert after("Home") == "b0"
    assert after("s") == "b2"
    assert shown(page, "#name") == ["Block 2: tokens 0 to 5 of branch 1"]
    page.focus("#path button")
    assert after("ArrowRight") == "b2"  # keys belong to what has the focus
    page.focus("#tree")
    assert after("s") == "b0"


def test_pointing_at_a_block_marks_the_path_to_the_root(page, writer):
    opened(page, writer.pages([plain_tree(writer)]))
    page.hover("#b4 .bar", force=True)
    assert page.locator("#tree.hovering .block.on").evaluate_all("all => all.map((e) => e.id)") == ["b0", "b4"]
    assert page.locator("#trail").get_attribute("d")
    page.hover("#title")
    assert page.locator("#tree.hovering").count() == 0
    assert page.locator(".block.on").count() == 0


def test_advantage_stands_above_or_beneath_the_bar_and_entropy_on_request(page, writer):
    opened(page, writer.pages([plain_tree(writer)]))
    assert page.locator("#b3 .plus").bounding_box()["y"] < page.locator("#b3 .bar").bounding_box()["y"]
    assert page.locator("#b4 .minus").bounding_box()["y"] > page.locator("#b4 .bar").bounding_box()["y"]
    strong, weak = (page.locator(selector).bounding_box()["height"] for selector in ("#b4 .minus", "#b0 .plus"))
    assert strong / weak == pytest.approx((2 / 3) / (1 / 6), rel=0.1)
    page.check("[value=entropy]")
    assert page.locator("#tree .plus").count() == 0
    assert page.locator("#tree .curve").count() == 5


@pytest.mark.parametrize("name", ["tree-0000.html", "index.html"])
def test_whatever_a_rollout_says_is_text_and_nothing_runs(page, writer, name):
    tree = hostile_tree(writer)
    opened(page, writer.pages([tree]), name)
    whole = page.locator("body").inner_text()
    assert ATTACKS[0] in whole and "⟨U+202E⟩reversed⟨U+202C⟩" in whole
    if name == "tree-0000.html":
        for block in range(len(tree.tree.blocks)):
            page.evaluate(f"choose({block})")
            assert page.evaluate("window.ran") is None
        page.evaluate("choose(1)")
        said = "".join(shown(page, "#text .token"))
        assert all(attack in said for attack in ATTACKS[3:15])
        assert shown(page, "#facts dd")[-2].startswith(ATTACKS[0])
        assert shown(page, "#problem")[0].startswith(ATTACKS[0])
    assert page.evaluate("window.ran") is None
    allowed = "script:not(#data)"
    assert page.locator(allowed).count() == 1
    assert page.locator("img, iframe, object, embed, base, form, link").count() == 0
    assert page.locator("[onload], [onerror], a[href^='javascript']").count() == 0


def test_the_policy_stops_what_would_get_in(browser, writer):
    """A second lock behind the first: no markup out of strings, no foreign script, style or picture."""
    page = browser.new_page()  # one that may complain: the browser reports what it stops
    opened(page, writer.pages([plain_tree(writer)]))
    markup = "() => { try { document.body.innerHTML = '<b>x</b>'; return 'let in'; } catch (e) { return e.name; } }"
    assert page.evaluate(markup) == "TypeError"
    stopped = page.evaluate(
        """() => new Promise((done) => {
            const stopped = new Set();
            document.addEventListener("securitypolicyviolation", (event) => stopped.add(event.effectiveDirective));
            const script = document.createElement("script");
            try { script.append("window.ran = 1"); document.body.append(script); } catch {}
            const style = document.createElement("style");
            style.append("body { display: none }");
            document.body.append(style);
            const picture = new Image();
            picture.src = "https://example.org/x.png";
            document.body.append(picture);
            fetch("https://example.org/").catch(() => setTimeout(() => done([...stopped]), 100));
        })"""
    )
    assert {"img-src", "style-src-elem", "connect-src"} <= set(stopped)
    assert page.evaluate("window.ran") is None
    assert page.locator("#tree").is_visible()
    page.close()


def test_odd_texts_stay_inside_their_places(page, writer):
    """Words of 600 letters, right-to-left letters, emoji."""
    opened(page, writer.pages([hostile_tree(writer)]))
    for block in range(5):
        page.evaluate(f"choose({block})")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 1440
        assert page.evaluate("document.getElementById('text').scrollWidth") <= page.evaluate(
            "document.getElementById('text').clientWidth"
        )
    page.evaluate("choose(1)")
    said = shown(page, "#text .token")
    assert "👩‍👩‍👧‍👦" in said and "مرحبا بالعالم" in said and "⏎\n" in said and "→\t" in said


def test_trees_without_signals_texts_diversity_or_forks(page, writer):
    bare = writer.branch(None, 0, ["lonely", " answer"], 0, logprobs=False)
    folder = writer.pages([SavedTree(grown([bare])), SavedTree(grown([writer.branch(None, 0, [], 1)]))])
    opened(page, folder)
    assert page.locator("#tree .block").count() == 1
    assert "no entropy in the file" in shown(page, "#heat")[0]
    assert "neither diversity nor texts" in shown(page, "#credit .hint")[0]
    assert "reads the signal “sentence”, which is not in the file" in shown(page, "#rules")[0]
    assert shown(page, "#siblings-name") == ["Base rollouts none"]
    page.check("[value=entropy]")
    assert shown(page, "#legend")[0].endswith("no entropy in the file")
    page.click("#next")
    page.wait_for_selector("#tree .block")
    assert shown(page, "#text .token") == ["·"]  # an end token alone
    page.hover("#text .token")
    assert shown(page, "#readout")[0].startswith("token 0, id 1, no text of its own")
    assert END not in shown(page, "#text")[0]
    page.click("text=All trees")
    page.wait_for_selector(".card")


def test_the_index_leads_to_every_tree_and_can_leave_out_the_uniform(page, writer):
    uniform = SavedTree(grown([writer.branch(None, 0, ["a"], 0), writer.branch(None, 0, ["b"], 0)]))
    opened(page, writer.pages([uniform, plain_tree(writer)]), "index.html")
    assert page.locator(".card").count() == 2
    assert "2 of 4 leaves right; 1 fork; 19 tokens" in shown(page, ".card")[1]
    drawn = "canvas => canvas.getContext('2d').getImageData(0, 0, 460, 220).data.some((byte) => byte > 0)"
    page.wait_for_function(f"() => ({drawn})(document.querySelectorAll('canvas')[1])", timeout=5000)
    page.check("#mixed")
    assert page.locator(".card").count() == 1
    page.click(".card")
    page.wait_for_selector("#tree .block")
    assert shown(page, "#title") == ["Tree 1, problem p/1"]


def test_narrow_windows_scroll_instead(page, writer):
    page.set_viewport_size({"width": 420, "height": 700})
    opened(page, writer.pages([plain_tree(writer)]))
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    assert page.evaluate("scrollY") == 0  # what is chosen at first does not scroll past the problem
    tree, block = page.locator("#tree").bounding_box(), page.locator("#block").bounding_box()
    assert tree["y"] + tree["height"] <= block["y"]


def test_the_largest_tree_is_drawn_and_clicked_at_once(page, writer):
    """52 leaves of 400 tokens: only the shown block's tokens are elements. Limits are generous, for a busy machine."""
    folder = writer.pages([largest_tree(writer)])
    size = (folder / "tree-0000.html").stat().st_size
    start = time.perf_counter()
    opened(page, folder)
    load = time.perf_counter() - start
    assert page.locator("#tree .block").count() == 52 + 12
    timed = """(i) => new Promise((done) => {
        const start = performance.now();
        document.querySelector(`#b${i} .hit`).dispatchEvent(new MouseEvent("click", {bubbles: true}));
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
    })"""
    clicks = [page.evaluate(timed, i) for i in range(0, 64, 4)]
    elements = page.evaluate("document.querySelectorAll('*').length")
    print(f"page {size:,} bytes, load {load:.2f} s, click {max(clicks):.0f} ms, {elements} elements")
    assert page.locator("#text .token").count() <= 400
    assert elements < 3000
    assert size < 1_000_000
    assert load < 5
    assert max(clicks) < 500
