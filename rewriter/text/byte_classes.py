"""What the bytes above 0x7F are outside of quotes, in character sets of one byte a character.

Made by `python -m tests.rewriter.byte_classes`, which asks MariaDB 10.11 and MySQL 9.7; a test compares.
"""

from __future__ import annotations

from typing import Final

#: Character set: bytes of names, white space. Ranges of hexadecimal numbers, the last one included.
TABLE: Final = """
armscii8 b2-fd a0
ascii - -
binary - -
cp1250 8a,8c-8f,9a,9c-9f,a3,a5,a7,aa,af,b3,b9-ba,bc,be-d6,d8-f6,f8-fe a0
cp1251 80-81,83,8a,8c-90,9a,9c-9f,a1-a3,a5,a8,aa,af,b2-b4,b8,ba,bc-ff -
cp1256 81,83,8c-8e,90,9c,c1-d6,d8-f6,f8-fc -
cp1257 a8,aa,af,b8,ba,bf-d6,d8-f6,f8-fe -
cp850 80-9b,9d,a0-a5,b5-b7,c6-c7,d0-d8,de,e0-e5,e7-ed -
cp852 80-9d,9f-a9,ab-ad,b5-b8,bd-be,c6-c7,d0-d8,dd-de,e0-ee,fb-fd ff
cp866 80-af,e0-f7 ff
dec8 c0-cf,d1-d6,d8-dd,df-ef,f1-f6,f8-fd a0
geostd8 c0-e5 a0
greek b6,b8-ba,bc,be-d1,d3-fe a0
hebrew e0-fa a0
hp8 c5,cc,ce-d0,d3-d4,d7-d8,da-dc -
keybcs2 80-ab,e0-e5,e7-eb,ed-ee ff
koi8r a3,b3,c0-ff -
koi8u a3-a4,a6-a7,ad,b3-b4,b6-b7,bd,c0-ff -
latin1 83,8a,8c,8e,9a,9c,9e-9f,c0-d6,d8-f6,f8-ff a0
latin2 a5,a9-ac,ae-af,b1,b3,b5-b6,b9-bc,be-cf,d1-d6,d8-de,e0-f6,f8-fe -
latin5 c0-d6,d8-f6,f8-ff a0
latin7 80,aa,af,ba,bf-d6,d8-f6,f8-fe a0
macce 80-9f,a2,a7,ab,ae-b1,b4-b5,b8-c1,c4-c5,cb-cf,d8-db,de-e1,e4-fe -
macroman 81-9f,a7,ae-af,be-bf,c4,cc-cd,d8-d9,e6-ef,f1-f5 -
swe7 - -
tis620 - -
"""
