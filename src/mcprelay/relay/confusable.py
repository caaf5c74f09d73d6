"""Which characters look like others: lookalikes of Latin letters, and names reduced to what they look like.

The table holds the letters of other scripts that common fonts draw like Latin ones. It serves review and reports, and
decides nothing: a name that is not ASCII has its digest in its public name anyway.
"""

# ruff: noqa: RUF001 - lookalikes are what the table is of

from __future__ import annotations

import unicodedata

_LOOKALIKES = {
    "a": "аɑα",
    "b": "ЬᏏ",
    "c": "сϲᴄⲥ",
    "d": "ԁɗ",
    "e": "еҽ",
    "f": "ƒք",
    "g": "ɡց",
    "h": "һհᏂ",
    "i": "іıι",
    "j": "јϳ",
    "k": "кκᴋ",
    "l": "ӏǀ",
    "m": "мᴍ",
    "n": "ոпη",
    "o": "оοօᴏσ",
    "p": "рρⲣ",
    "q": "ԛզ",
    "r": "гᴦ",
    "s": "ѕꜱ",
    "t": "тτᴛ",
    "u": "υսᴜ",
    "v": "ѵνᴠ",
    "w": "ԝѡᴡ",
    "x": "хχ",
    "y": "уγүʏ",
    "z": "ᴢ",
    "A": "АΑᎪ",
    "B": "ВΒᏴ",
    "C": "СϹᏟ",
    "D": "Ꭰ",
    "E": "ЕΕᎬ",
    "F": "Ϝ",
    "G": "ԌᏀ",
    "H": "НΗᎻ",
    "I": "ІΙӀ",
    "J": "ЈᎫ",
    "K": "КΚᏦ",
    "L": "Ꮮ",
    "M": "МΜᎷ",
    "N": "ΝⲚ",
    "O": "ОΟՕ",
    "P": "РΡᏢ",
    "S": "ЅՏᏚ",
    "T": "ТΤᎢ",
    "U": "Ս",
    "V": "ѴᏙ",
    "W": "ԜᎳ",
    "X": "ХΧ",
    "Y": "УΥҮᎩ",
    "Z": "ΖᏃ",
}
LOOKALIKES: dict[str, str] = {char: letter for letter, chars in _LOOKALIKES.items() for char in chars}
"""Letters of other scripts, with the Latin letter that each looks like."""
_ALIKE = str.maketrans({**{char: letter.lower() for char, letter in LOOKALIKES.items()}, "0": "o", "1": "l", "i": "l"})


def skeleton(name: str) -> str:
    """What a name looks like at a glance: equal for names that a reader may take for each other."""
    folded = unicodedata.normalize("NFKC", name).translate(_ALIKE).casefold().translate(_ALIKE)
    return "".join(char for char in folded if char.isalnum()).replace("rn", "m")


def varies(char: str) -> bool:
    """Whether it is an ASCII letter or digit in another dress: wide, narrow, or mathematical."""
    dress, _, plain = unicodedata.decomposition(char).partition(" ")
    return dress in {"<wide>", "<narrow>", "<font>"} and plain in _ASCII


_ASCII = frozenset(f"{code:04X}" for code in range(0x80) if chr(code).isalnum())
