"""What the sample rows are made of."""

from __future__ import annotations

import unicodedata

FIRST_NAMES = (
    "Ada", "Alan", "Amélie", "Ana", "Björn", "Chloé", "Daniela", "Edsger", "Emeka", "Fatima", "Grace",
    "Hiroshi", "Ines", "Ivan", "João", "Jürgen", "Katya", "Leila", "Linus", "Lin", "Maëlle", "Marta", "Mei",
    "Nikola", "Noor", "Olu", "Pia", "Quentin", "Rosa", "Søren", "Tomás", "Uma", "Vera", "Wanjiru", "Xin",
    "Yara", "Yusuf", "Zoë",
)  # fmt: skip

LAST_NAMES = (
    "Abe", "Andersson", "Baptiste", "Chen", "Costa", "Dubois", "Eze", "Fischer", "García", "Hopper", "Ito",
    "Jansen", "Kaya", "Kovač", "Larsen", "Liskov", "Mbeki", "Müller", "Nagy", "Novák", "O'Brien", "Okafor",
    "Papadopoulos", "Petrova", "Quispe", "Rossi", "Sato", "Silva", "Singh", "Turing", "Ueda", "Vargas",
    "Wang", "Yılmaz", "Zhang",
)  # fmt: skip

ABOUTS = (
    "Collects far too many recipes.",
    "Plans trips, sometimes takes them.",
    "Teacher by day, potter by night.",
    "Everything with wheels.",
    "Gardens on a very small balcony.",
    "Builds furniture out of pallets.",
    'Believes in "one more pin".',
    "Photographs doors; 100% of them blue.",
    "Runs slowly, reads fast.",
    "Sews, knits & mends.",
)

TOPICS = (
    ("Food", ("lemon tart", "ramen", "sourdough bread", "mango salad", "crème brûlée", "shakshuka")),
    ("Travel", ("night train", "island ferry", "mountain hut", "old harbour", "desert road", "城市夜景")),
    ("Home", ("reading corner", "kitchen shelf", "oak table", "linen curtain", "hallway bench")),
    ("Garden", ("tomato trellis", "herb spiral", "rain barrel", "bee hotel", "raised bed")),
    ("Crafts", ("paper crane", "wool blanket", "clay bowl", "linocut print", "macramé knot")),
    ("Cars", ("small roadster", "camper van", "electric moped", "pickup truck", "rally car")),
    ("Art", ("ink drawing", "mural", "charcoal portrait", "glass mosaic", "water colour")),
    ("Science", ("orrery", "crystal garden", "paper rocket", "star map", "leaf cell")),
)

ADJECTIVES = (
    "amazing", "bright", "calm", "clever", "cosy", "easy", "fresh", "golden", "hidden", "little", "minimal",
    "modern", "quiet", "rustic", "simple", "sunny", "vintage", "weekend", "wild", "wonderful",
)  # fmt: skip

SITES = (
    "blog.example.com",
    "recipes.example.org",
    "www.example.net",
    "shop.example.com",
    "atlas.example.org",
)

COMMENTS = (
    "Love this!",
    "Where did you find it?",
    "Made it yesterday, worked well.",
    "It's on my list now",
    "so beautiful 😍",
    "Does this come in blue?",
    "Très joli !",
    "本当にきれいですね",
    "My grandmother had one of these.",
    'The link says "not found"; is there a copy?',
    "100% agree",
    "How long does it take?",
)

CAPTIONS = ("Sunset", "Morning run", "Union Station, all mine", "Café, again", "The view from up here",
            "Sunday market", "First snow", "Street food", "Backstage", "No filter")  # fmt: skip

EMOJI = ("🌻", "📌", "☕", "🚲", "🧵", "🏔️", "🍜", "✨")

COUNTRIES = (
    ("AR", "Argentina"), ("AT", "Austria"), ("AU", "Australia"), ("BR", "Brazil"), ("CA", "Canada"),
    ("CH", "Switzerland"), ("CI", "Côte d’Ivoire"), ("CL", "Chile"), ("CN", "China"), ("CZ", "Czechia"),
    ("DE", "Germany"), ("DK", "Denmark"), ("EG", "Egypt"), ("ES", "Spain"), ("FI", "Finland"),
    ("FR", "France"), ("GB", "United Kingdom"), ("GR", "Greece"), ("IE", "Ireland"), ("IN", "India"),
    ("IT", "Italy"), ("JP", "Japan"), ("KE", "Kenya"), ("KR", "South Korea"), ("MX", "Mexico"),
    ("NG", "Nigeria"), ("NL", "Netherlands"), ("NO", "Norway"), ("NZ", "New Zealand"), ("PE", "Peru"),
    ("PL", "Poland"), ("PT", "Portugal"), ("SE", "Sweden"), ("TR", "Türkiye"), ("US", "United States"),
    ("ZA", "South Africa"),
)  # fmt: skip

PRODUCTS = ("Board game", "Desk lamp", "Enamel mug", "Field notebook", "Garden shears", "Tea towel")
CITIES = ("Amsterdam", "Bogotá", "Cape Town", "Göteborg", "Kyoto", "Lisboa", "München", "Nairobi", "Portland")


def plain(name: str) -> str:
    """A name's letters in ASCII lower case, for user names and addresses."""
    decomposed = unicodedata.normalize("NFKD", name.replace("ø", "o").replace("ı", "i"))
    return "".join(letter for letter in decomposed.lower() if letter.isascii() and letter.isalpha())
