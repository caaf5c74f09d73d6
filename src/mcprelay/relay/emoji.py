"""Which invisible characters belong to a registered emoji, and so may stay in a text.

A variation selector, a zero-width joiner or a tag character is registered only inside certain sequences (Unicode
Technical Standard 51 and its data files: presentation sequences, ZWJ sequences, the three subdivision flags). The
grammar below says exactly these, up to Emoji 18, and takes the forms without U+FE0F that older keyboards write.
"""

from __future__ import annotations

import re
from functools import lru_cache

from mcprelay.invisible import JOINER

FLAG = "\U0001f3f4"
"""The black flag that the tag characters of a subdivision flag follow."""

VARIED = (
    "©®‼⁉™\u2139↔-↙↩↪⌚⌛⌨⏏⏩⏪⏭-⏯⏱-⏳⏸-⏺Ⓜ▪▫▶◀◻-◾☀-☄☎☑☔☕☘☝☠☢☣☦☪☮☯☸-☺♀♂♈-♓♟♠♣♥♦♨♻♾♿⚒-⚗⚙⚛⚜⚠⚡⚧⚪⚫⚰⚱⚽⚾⛄⛅⛈⛏⛑⛓⛔⛩⛪⛰-⛵⛷-⛺"
    "⛽✂✈✉✌✍✏✒✔✖✝✡✳✴❄❇❓❗❣❤➡⤴⤵⬅-⬇⬛⬜⭐⭕〰〽㊗㊙🀄🅰🅱🅾🅿🈂🈚🈯🈷🌍-🌏🌕🌜🌡🌤-🌬🌶🍸🍽🎓🎖🎗🎙-🎛🎞🎟🎧🎬-🎮🏂🏄🏆🏊-🏎🏔-🏠🏭🏳🏵🏷🐈🐕🐟🐦🐿"
    "👁👂👆-👉👍👎👓👪👽💣💰💳💻💿📋📚📟📤-📦📪-📭📷📹-📻📽🔈🔍🔒🔓🕉🕊🕐-🕧🕯🕰🕳-🕹🖇🖊-🖍🖐🖥🖨🖱🖲🖼🗂-🗄🗑-🗓🗜-🗞🗡🗣🗨🗯🗳🗺😐🚇🚍🚑🚔🚘🚭🚲🚹🚺🚼🛋"
    "🛍-🛏🛠-🛥🛩🛰🛳"
)
"""Characters, as a class of a regular expression, that a variation selector may follow (keycaps are told apart)."""

_LONGEST = 16
"""Characters of the longest registered sequence, and a few."""
_SKIN = "[🏻-🏿]"
_KIDS = f"(?:👦(?:{JOINER}👦)?|👧(?:{JOINER}[👦👧])?)"
_LOVE = f"❤\ufe0f?{JOINER}(?:💋{JOINER})?"
_JOB = f"(?:[🌾🍳🍼🎓🎤🎨🏫🏭💻💼🔧🔬🚀🚒🦰-🦳]|[⚕⚖✈]\ufe0f?|[🦯🦼🦽](?:{JOINER}➡\ufe0f?)?)"
_GENDER = "[♀♂]\ufe0f?"
_ACTIVE = "⛹🏃🏄🏊-🏌👮👯👰👱👳👷💁💂💆💇🕵🙅-🙇🙋🙍🙎🚣🚴-🚶🤦🤵🤷-🤹🤼-🤾🦸🦹🧍-🧏🧔🧖-🧝"
_JOINED: tuple[tuple[str, str], ...] = (  # the first character, and what follows it; longer forms first
    ("👨👩", f"{JOINER}{_LOVE}👨"),
    ("👩", f"{JOINER}{_LOVE}👩"),
    ("👨👩", f"{_SKIN}{JOINER}(?:{_LOVE}|🤝{JOINER})👨{_SKIN}"),
    ("👩", f"{_SKIN}{JOINER}(?:{_LOVE}|🤝{JOINER})👩{_SKIN}"),
    ("🧑", f"{_SKIN}{JOINER}(?:{_LOVE}|🤝{JOINER})🧑{_SKIN}"),
    ("🧑", f"{JOINER}🤝{JOINER}🧑"),
    ("👨", f"{_SKIN}{JOINER}[🐰🫯]{JOINER}👨{_SKIN}"),
    ("👩", f"{_SKIN}{JOINER}[🐰🫯]{JOINER}👩{_SKIN}"),
    ("🧑", f"{_SKIN}{JOINER}[🐰🫯]{JOINER}🧑{_SKIN}"),
    ("👨👩", f"{JOINER}(?:👩{JOINER})?{_KIDS}"),
    ("👨", f"{JOINER}👨{JOINER}{_KIDS}"),
    ("🧑", f"{JOINER}(?:🧑{JOINER})?🧒(?:{JOINER}🧒)?"),
    ("👨👩🧑", f"{_SKIN}?{JOINER}{_JOB}"),
    ("🧑", f"{_SKIN}?{JOINER}[🎄🩰]"),
    ("🏃🚶🧎", f"{_SKIN}?(?:{JOINER}{_GENDER})?{JOINER}➡\ufe0f?"),
    (_ACTIVE, f"(?:{_SKIN}|\ufe0f)?{JOINER}{_GENDER}"),
    ("🧞🧟", f"{JOINER}{_GENDER}"),
    ("🫱", f"{_SKIN}{JOINER}🫲{_SKIN}"),
    ("🐈", f"{JOINER}⬛"),
    ("🐦", f"{JOINER}[⬛🔥]"),
    ("❤", f"\ufe0f?{JOINER}[🔥🩹]"),
    ("🙂", f"{JOINER}[↔↕]\ufe0f?"),
    ("🏴", f"{JOINER}☠\ufe0f?"),
    ("🏳", f"\ufe0f?{JOINER}(?:🌈|⚧\ufe0f?)"),
    ("🐻", f"{JOINER}❄\ufe0f?"),
    ("😶", f"{JOINER}🌫\ufe0f?"),
    ("⛓", f"\ufe0f?{JOINER}💥"),
    ("👁", f"\ufe0f?{JOINER}🗨\ufe0f?"),
    ("😮", f"{JOINER}💨"),
    ("😵", f"{JOINER}💫"),
    ("🍋", f"{JOINER}🟩"),
    ("🍄", f"{JOINER}🟫"),
    ("🐕", f"{JOINER}🦺"),
)
_FIRST = "".join(first for first, _ in _JOINED)
_REST = "|".join(f"(?<=[{first}]){rest}" for first, rest in _JOINED)
JOINED = re.compile(f"[{_FIRST}](?:{_REST})")
"""A registered sequence with joiners."""

_EMOJI = "\u2190-\u2bff\U0001f000-\U0001faff"
CHAIN = re.compile(
    f"[\u2764\u26d3\u26f9\U0001f34b-\U0001faf1](?:[🏻-🏿]?\ufe0f?{JOINER}[{_EMOJI}])+(?:[🏻-🏿]?\ufe0f?)"
)
"""What looks like a sequence with joiners: every registered one does. Few ranges, so that searching is quick."""


@lru_cache(maxsize=2048)
def joined(chain: str) -> bool:
    """Whether what looks like a sequence is a registered one."""
    return len(chain) <= _LONGEST and JOINED.fullmatch(chain) is not None


_SUBDIVISIONS = "|".join("".join(chr(0xE0000 + ord(letter)) for letter in code) for code in ("gbeng", "gbsct", "gbwls"))
FLAGGED = f"{FLAG}(?:{_SUBDIVISIONS})\U000e007f"
"""A registered subdivision flag (England, Scotland, Wales), as a regular expression."""
