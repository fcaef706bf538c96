"""Rules on wording: a definition describes its tool and must not give orders to the agent that reads it.

Patterns look at `ScannedText.plain`: case folded, look-alikes and invisible characters gone. They stay within a
sentence, and every repetition has an end: servers choose the texts that they are matched against.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache

from pegboard.trust.definition_texts import plain
from pegboard.trust.disguises import LEET, leeted_words, spaced
from pegboard.trust.findings import ARGUMENTS, HINTS, NAME, Finding, ScannedText
from pegboard.trust.needed_words import PatternTable

Weighted = tuple[tuple[float, re.Pattern[str], int], ...]
"""Weights and patterns, with the number that has each one's bit in what `PatternTable.possible` returns."""
_ALL: list[re.Pattern[str]] = []


def _patterns(*pairs: tuple[float, str]) -> Weighted:
    first = len(_ALL)
    _ALL.extend(re.compile(pattern, re.VERBOSE) for _, pattern in pairs)
    return tuple((weight, _ALL[place], 1 << place) for place, (weight, _) in enumerate(pairs, first))


@cache
def _table() -> PatternTable:
    """Made for the first text, not on import."""
    return PatternTable(_ALL)


@lru_cache(maxsize=16)
def possible(text: str) -> int:
    """Which patterns may match a text, as a number with a bit for each; 0 for most texts."""
    return _table().possible(text)


def _near(most: int) -> str:
    """A pattern for at most ``most`` characters within one sentence."""
    return rf"[^.!?\n]{{0,{most}}}"


def _wrapped(most: int) -> str:
    """The same, in a sentence that may go on in the next line."""
    return rf"(?:[^.!?\n]|(?<=[\w,])\n(?=\w)){{0,{most}}}"


_LIMITS = r"""(?:guardrails?|safety\ (?:filters?|checks?|guidelines|restrictions?|measures|rules)|content\ filter(?:s
|ing)?
    |ethical\ (?:limits|guidelines|restrictions)|security\ (?:guardrails|restrictions|checks))"""
OVERRIDE = _patterns(
    (
        0.9,
        rf"""\b(?:ignore|disregard|forget|override|bypass|discard|set\ aside|supersedes?|takes?\ precedence\ over)\b
        {_wrapped(40)}?
        \b(?:previous|prior|above|earlier|preceding|existing|system|original|other|safety|all|any|your)\b
        {_wrapped(30)}?
        \b(?:instructions?|prompts?|guidelines?|directives?|rules?|guardrails?|policy|policies|orders|constraints
        |safeguards)\b""",
    ),
    (
        0.9,
        rf"""\byou\ are\ (?:now|no\ longer)\b{_near(60)}
        \b(?:mode|assistant|restricted|bound|agent|admin\w*|root)\b""",
    ),
    (0.7, r"\b(?:new|updated|real|actual)\ (?:system\ )?(?:instructions?|directives?|prompt)\b\ *:"),
    (
        0.7,
        rf"""\b(?:forget|ignore|disregard)\ (?:everything|all|anything|what)\b{_near(25)}
        \b(?:above|before\ this|so\ far|(?:was|were|been)\ (?:said|told|written))\b
        |\byour\ (?:new|real|actual|only|true)\ (?:task|goal|job|objective|mission|purpose)\ is\b
        |\b(?:stop|abandon|abort|drop)\ (?:the|your|this)\ (?:current|present|original)\ (?:task|work|request)\b
        {_near(20)}\binstead\b
        |\bfrom\ (?:now\ on|here\ on|this\ point\ on),?\ you\ (?:are|must|will|only|always|act|answer|obey)\b""",
    ),
    (0.9, r"忽略[^。\n]{0,12}(?:指令|指示|提示|规则)|無視して|(?:以前|上記)の指示を|игнорируй[^.\n]{0,30}инструкци"),
    (
        0.9,
        rf"""\b(?:ignora|ignore[rz]?|ignoriere\w*|missachte\w*|olvida|omite|descarta|oublie[rz]?|vergiss
        |vergesse)\b{_near(40)}
        \b(?:instrucciones|indicaciones|instruc[oõ]es|anweisungen|vorgaben|befehle|consignes|r[eè]gles|regeln|reglas
        |instructions\ (?:pr[eé]c[eé]dentes|ant[eé]rieures|ci-dessus))\b""",
    ),
    (
        0.8,
        rf"""\b(?:vergiss|vergesst|vergessen\ sie|ignorier\w*)\ alles\b{_near(25)}
        \b(?:gesagt\w*|vorher\w*|bisher\w*|oben|zuvor)\b
        |\bignoriere?\ die\ des\ systems\b
        |\b(?:befolge?|befolgt|befolgen\ sie|folge)\b{_near(20)}\bnur\ (?:noch\ )?(?:diese\w*|meine\w*|folgende\w*)
        \ (?:anweisung|befehl|regel|vorgabe)\w*
        |\b(?:oublie[rz]?|ignore[rz]?)\ tout\ (?:ce\ qui\ (?:pr[eé]c[eè]de|a\ [eé]t[eé])|le\ reste)\b
        |\b(?:olvida|olvide|olviden|ignora|ignore|descarta)\ todo\ lo\ (?:anterior|previo|que\ se\ te)\b""",
    ),
    (0.9, r"(?:无视|忘记|忽视|不理会)[^。\n]{0,12}(?:指令|指示|提示|规则|要求)"),
    (
        0.9,
        rf"""\b(?:ignora|ignorate|ignori|dimentica|ignore|ignora[lr]|desconsidere|esque[cç]a)\b{_near(40)}
        \b(?:istruzioni|regole|indicazioni|direttive|instru[cç][oõ]es|regras|orienta[cç][oõ]es|diretrizes)\b
        |(?:指示|命令|規則|ルール)[^。\n]{{0,8}}(?:無視|忘れ)|(?:지시|지침|명령|규칙)[^.\n]{{0,10}}(?:무시|잊)""",
    ),
    (0.7, r"\b(?:ignore|disregard|forget)\ (?:all\ |any\ )?(?:the\ |your\ |my\ )?(?:previous|prior|earlier)\ \w{8,}"),
    (
        0.6,
        rf"""\b(?:disable|bypass|deactivate|suspend|switch\ off|turn\ off|remove|lift)\ (?:\w+\ ){{0,3}}{_LIMITS}\b
        |\b(?:{_LIMITS}|(?:previous|prior|all|your)\ (?:instructions|rules|restrictions))\b
        \ ?(?::|are|is|have\ been|were)?\ ?(?:now\ |hereby\ )?(?:disabled|bypassed|deactivated|suspended|void|lifted
        |revoked|cancell?ed|off)\b""",
    ),
    (
        0.6,
        rf"""\byou\ (?:are|have)\b{_near(50)}\b(?:with\ no|without(?:\ any)?)
        \ (?:limits|limitations|restrictions|rules|guardrails)\b""",
    ),
)
"""Orders to ignore earlier instructions."""

_NOT = r"(?:do\ not|don'?t|never|must\ not|should\ not|avoid|without|no\ need\ to|refrain\ from)"
_TELL = r"""(?:tell|telling|inform|informing|alert|alerting|notify|notifying|warn|warning|disclos\w+|reveal\w*
    |mention\w*)"""
SECRECY = _patterns(
    (0.7, rf"\b{_NOT}\ (?:ever\ |explicitly\ )?{_TELL}\b{_near(60)}\b(?:users?|humans?|anyone|person|operator)\b"),
    (
        0.5,
        r"""[\[(<]\ ?(?:do\ not|don'?t|never)\ (?:show|display|reveal|mention)(?:\ this|\ it)?
        (?:\ to)?(?:\ the)?\ users?\b""",
    ),
    (
        0.5,
        r"""\b(?:user|human|operator)\b\ (?:must|should|need|does|may|can)\ ?(?:not|n'?t|never)\ (?:\w+\ )?
        (?:know|notice|see\ this|be\ (?:told|aware|informed))\b""",
    ),
    (
        0.6,
        rf"""\b(?:keep|hide|conceal)\b{_near(30)}
        \b(?:from\ (?:the\ )?(?:user|human|operator)|secret\ from|between\ us)\b""",
    ),
    (
        0.5,
        rf"""\b(?:silently|secretly|covertly|quietly|discreetly)\b{_near(40)}
        \b(?:send|call|read|copy|forward|add|append|include|upload|run|execute|pass|post|collect|attach)\w*\b""",
    ),
    (
        0.7,
        rf"""\b(?:sage?|erz[aä]hle?|verrate|teile|informiere|melde
        |zeige)\b{_near(40)}\b(?:be)?nutzer\w*{_near(30)}\bnich(?:t|ts)\b
        |\bohne\ (?:den|dem|die|es\ dem)\ (?:be)?nutzer\w*\ {_near(20)}\bzu\ (?:informieren|fragen|sagen|zeigen|warnen)
        |\b(?:be)?nutzer\w*\ (?:darf|soll)\b{_near(30)}\bnicht\b{_near(20)}\b(?:erfahren|wissen|merken|sehen)\b""",
    ),
    (
        0.7,
        rf"""\bne\ (?:l[ea]s?\ |lui\ )?(?:dis|dites|mentionne[rz]?|r[eé]v[eè]le[rz]?|informe[rz]?|pr[eé]viens
        |montre[rz]?)\b
        {_near(30)}\b(?:rien|pas|jamais)\b{_near(30)}utilisateur
        |\bsans\ (?:en\ |le\ )?(?:informer|pr[eé]venir|avertir|dire|demander)\b{_near(20)}utilisateur
        |[aà]\ l'insu\ de\ l'utilisateur""",
    ),
    (
        0.7,
        rf"""\b(?:no|nunca)\ (?:se\ |le\ |lo\ )*(?:digas|diga|menciones|mencione|informes|informe|reveles|revele
        |avises|avise
        |muestres)\b{_near(40)}\busuari[oa]\b
        |\bsin\ (?:informar|avisar|decir\w*|preguntar|que\ lo\ sepa)\b{_near(20)}\busuari[oa]\b""",
    ),
    (
        0.7,
        r"(?:不要|别|切勿|不得)(?:告诉|通知|告知|提醒|让|向)[^。\n]{0,6}用户|(?:瞒着|隐瞒)[^。\n]{0,4}用户|(?:对|向)用户(?:隐瞒|保密)",
    ),
)
"""Orders to hide something from the user."""

MARKUP = _patterns(
    (
        0.5,
        r"""<\s{0,3}/?\s{0,3}(?:important|system|secret|instructions?|hidden|admin|assistant|priority|override|critical)
(?:[\s_-][\w\s-]{0,40})?\s{0,3}>""",
    ),
    (0.8, r"<\|[\w ]{2,20}\|>|\[/?inst\]|<<\s{0,3}/?sys\s{0,3}>>"),
    (
        0.5,
        r"""\[(?:system|admin|developer|assistant)(?:\ \w+)?\]
        |(?:^|\n)[^\S\n]{0,9}(?:system|assistant|developer)\ {0,3}:\s""",
    ),
    (0.4, r"<!--[^>]{15,2000}+>"),
    (0.3, r"\[\ {0,2}(?:very\ |most\ )?important\ {0,2}\]"),
    (
        0.5,
        r"""(?:^|\n|[.\]]\ )[^\S\n]{0,9}(?:hidden|secret|concealed)\ (?:instruction|step|order|command|directive)s?\b
        [^\n:]{0,40}:""",
    ),
    (
        0.5,
        r"""["']_{0,2}(?:system|ai|agent|llm|model|assistant|hidden)[_-]{1,2}
        (?:injection|instruction|command|order|directive|override)s?["']\ ?:""",
    ),
    (
        0.5,
        r"""(?:\#{2,4}|={3,5}|-{3,5}|\*{3,5})\ ?[\[({<]?(?:system|admin(?:istrator)?|developer|assistant)[\s_-]
        (?:message|prompt|instructions?|override|command)s?\b""",
    ),
    (
        0.35,
        r"""(?:^|\n|[.\]]\ )[^\S\n]{0,9}[\[({<\#*=|-]{0,6}\ ?(?:system|admin(?:istrator)?|developer|security)\ (?:
        message|prompt|notice|note|update|instructions?|override|alert|command)s?\ ?(?:[\])}>\#*=|-]|:\ )""",
    ),
)
"""Text disguised as another part of the conversation, or hidden when Markdown is rendered."""

_PRIVATE = r"""(?:~?/?\.ssh\b|id_(?:rsa|ed25519|dsa)|\.aws/|\.env\b(?!\w)|/etc/(?:passwd|shadow)|\.netrc|\.npmrc
    |\.git-credentials|mcp\.json|claude_desktop_config|\.kube/|\.gnupg|\.pgpass|wallet\.dat|keychain
    |private\ keys?\b|\bid\ (?:rsa|ed25519)\b|\bssh\ (?:private\ )?keys?\b
    |seed\ phrase|(?:browser|session)\ cookies|login\ data|credentials?\ (?:file|store)s?
    |(?:your|all|the\ user'?s|local|every)\ environment\ variables?|password\ (?:store|manager))"""
_HAND = r"""\b(?:include|attach|append|pass|provide|supply|send|copy|paste|put|embed|add|insert|includ|provid|past)
    (?:ing)?\b"""
_TAKE = rf"(?:{_HAND}|\b(?:read|open|cat|load|fetch|retrieve|retriev|collect)(?:ing)?\b)"
"""Imperatives only: `reads` and `provided` describe."""
CREDENTIALS = _patterns(
    (0.6, rf"{_TAKE}{_near(60)}(?:~?/?\.?[\w-]{{1,20}}/){{0,3}}{_PRIVATE}"),
    (
        0.5,
        rf"""\b(?:argument|parameter|field)\b{_near(20)}\b(?:takes?|gets?|expects?|holds?|receives?)\b
        {_near(20)}{_PRIVATE}""",
    ),
    (0.3, rf"{_PRIVATE}[^!?\n]{{0,60}}{_TAKE}"),
    (
        0.6,
        rf"""(?:\b(?:lies|lese|[oö]ffne|h[aä]nge|sende|schicke|kopiere|lis|lisez|ouvre|ouvrez|envoie|envoyez|copie
        |copiez|lee|lea|abre
        |env[ií]a|env[ií]e|copia|adjunta)\b|读取|打开|发送|复制|上传){_near(60)}{_PRIVATE}""",
    ),
    (0.3, rf"{_TAKE}{_near(60)}environment\ variables?"),
    (
        0.4,
        rf"""(?:{_TAKE}|\bask\b){_near(50)}\b(?:your|user)\ (?:\w+\ ){{0,2}}
        (?:passwords?|api\ ?keys?|secrets?|credentials?|access\ tokens?|auth\ tokens?|bearer\ tokens?)\b
        |\bask\b{_near(50)}\buser\b{_near(20)}\b(?:password|api\ ?key|token)s?\b""",
    ),
    (
        0.5,
        rf"""(?:{_TAKE}|\bask\b){_near(50)}
        \b(?:user'?s|their|his|my|any|all|every|available|known)\ (?:\w+\ ){{0,2}}
        (?:passwords?|api\ ?keys?|secrets?|credentials?|access\ tokens?|auth\ tokens?|bearer\ tokens?|passphrases?
        |pin\ codes?|one-time\ codes?)\b""",
    ),
)
"""Orders to hand over credentials."""

CONVERSATION = _patterns(
    (
        0.6,
        rf"""{_HAND}{_near(40)}
        \b(?:system\ prompt|(?:conversation|chat)\ (?:history|log|transcript)
        |(?:all|every|the)\ (?:previous|prior|earlier)\ messages?)\b""",
    ),
)
WHOLE_CONVERSATION = _patterns(
    (
        0.5,
        rf"""\b(?:full|entire|complete|whole|verbatim|all|raw)\b{_near(30)}
        \b(?:conversation|chat|dialogue?|message\ history|messages?|system\ prompt|prompt|instructions
        |context\ window)\b{_near(30)}(?:history|so\ far|transcript|verbatim|above|until\ now|word\ for\ word)""",
    ),
)
"""Only in descriptions of parameters: chat tools describe their results in these words."""

_OTHER = r"(?:any\ other|other|built-?in|another|existing|native|default|competing)"
_NAMED = r"""(?:[`'\"][\w.-]{2,40}[`'\"]|[a-z][a-z0-9]*(?:_[a-z0-9]+)+
    |\b(?!this\b|the\b|any\b|that\b|each\b|every\b|other\b|all\b)\w{3,40}\ (?:tool|function)\b)"""
_WHEN = r"(?:before|prior\ to|after|when|whenever|once|every\ time|each\ time|(?:for|upon)\ (?:every|any|each))"
_USING = r"(?:us(?:e|ing|es)|call(?:ing|s)?|invok(?:e|ing|es)|run(?:ning|s)?|execut(?:e|ing|es))"
_USE = r"(?:use|call|invoke|run|execute)"
STEERING = _patterns(
    (
        0.5,
        rf"""\b{_WHEN}\b(?:(?!\bthis\b)[^.!?\n]){{0,30}}\b{_USING}\b(?:(?!\bthis\b)[^.!?\n]){{0,15}}{_NAMED}
        (?:(?!\bnot\b|\ or\ )[^.!?\n]){{0,60}}
        \b{_USE}\b(?:(?!\bnot\b)[^.!?\n]){{0,20}}{_NAMED}""",
    ),
    (
        0.5,
        rf"""{_NAMED}\ (?:must|has\ to|needs\ to|should|is\ to)\ (?:\w+\ ){{0,3}}(?:called|invoked|used|executed|run
        |accessed
        |read)\b{_near(40)}\b(?:before|prior\ to|after|whenever|each\ time)\b{_near(40)}{_NAMED}""",
    ),
    (
        0.4,
        rf"""\b{_WHEN}\b(?:(?!\bthis\b)[^.!?\n]){{0,60}}\b(?:must|needs?\ to|ha(?:ve|s)\ to|should|required\ to
        |always|first|also|any|all|every)\b
        {_near(25)}\b{_USE}\b{_near(20)}{_NAMED}""",
    ),
    (
        0.3,
        rf"""\b(?:you\ must|must\ (?:first|also)|you\ have\ to|always)\ (?:first\ |also\ )?{_USE}\ (?:the\ )?
        {_NAMED}""",
    ),
    (
        0.4,
        rf"""\b(?:before|after|when|whenever|every\ time|each\ time|if)\b{_near(30)}
        \b(?:using|calling|invoking|running|use|call)\b{_near(20)}\b(?:any|every|all|each)\b{_near(15)}\btools?\b""",
    ),
    (
        0.4,
        rf"""\b(?:do\ not|don'?t|never|avoid|stop)\ (?:use|us|call|invok|trust|rely)\w*\b{_near(30)}
        \b{_OTHER}\b{_near(25)}\b(?:tools?|servers?|functions?|integrations?)\b""",
    ),
    (
        0.5,
        rf"""\b(?:instead\ of|rather\ than|in\ place\ of|replaces?|supersedes?|deprecates?)\b{_near(20)}
        \b(?:any|all|every|the)\ other\b{_near(20)}\b(?:tools?|servers?|functions?)\b""",
    ),
    (
        0.6,
        rf"""\b(?:when|whenever|if|every\ time|once)\b{_near(20)}\b(?:the\ )?
        [`'\"]?[a-z]\w{{0,40}}_\w{{1,40}}[`'\"]?(?:\ tool)?
        \ is\ (?:called|used|invoked|available|present|enabled)\b[^.\n]{{0,120}}
        \b(?:must|always|change|add|set|replace|redirect|also|first|bcc)\b""",
    ),
    (
        0.5,
        rf"""\b(?:other|all|any)\ tools?\b{_near(40)}
        \b(?:must|are\ (?:broken|unsafe|deprecated|outdated|insecure|malicious)|have\ to|should)\b""",
    ),
    (
        0.4,
        rf"""\b(?:must|always|have\ to|required\ to)\b{_near(25)}
        \b(?:call|use|run|invoke)\ this(?:\ \w+)?\ (?:tool|function)?\ ?
        (?:first|before\ (?:any|every|all|each|answering|responding|anything))\b""",
    ),
    (
        0.5,
        rf"""\b(?:always|must|should)\ (?:be\ )?(?:choose|select|prefer|prioriti[sz]e|pick|chosen|selected
        |preferred|prioriti[sz]ed)\b
        {_near(20)}\b(?:this\ (?:tool|function)|(?:over|above|before)\ (?:all|any|every)\b{_near(15)}\btools?)\b""",
    ),
    (
        0.5,
        rf"""\b(?:best|superior|most\ (?:accurate|reliable|powerful|trusted|effective))\ (?:\w+\ ){{0,2}}(?:tool
        |choice|option)\b{_near(40)}
        \b(?:always\ (?:use|choose|call|select|prefer)|(?:than|over)\ (?:all|any|every)\b{_near(10)}\b(?:tools?
        |others?))\b""",
    ),
    (
        0.5,
        r"""\b(?:use|call|choose|run|pick)\ (?:just\ |only\ )?this(?:\ (?:tool|function|one))?\ (?:rather\ than
        |instead\ of|over
        |and\ not)\ (?:the\ )?(?:others|rest|any\ (?:similar|alternative)|(?:all|any|every)\ others?)\b
        |\b(?:just|only|always)\ (?:use|call|run)\ this(?:\ (?:tool|function))?\ (?:no\ matter|regardless\ of|even\ if
        |whatever)\b""",
    ),
    (
        0.5,
        rf"""\b(?:before|after|when|whenever|once|while)\b{_near(60)}
        \b(?:use|call|run|execute|invoke)\ this\ (?:tool|function)\b{_near(30)}
        \b(?:replace|overwrite|modify|change|alter|substitute)\b{_near(30)}
        \b(?:values?|results?|arguments?|inputs?|outputs?|answer|response|numbers)\b""",
    ),
)
"""Orders about the use of other tools, or to prefer this one."""

PRETEXT = _patterns(
    (
        0.25,
        rf"""\b(?:to|for)\ (?:ensure|verify|check|validate|guarantee|security|compliance|safety|audit|prevent)\w*\b
        {_near(30)}
        \b(?:security|integrity|permissions?|authori[sz]ation|compliance|safety|consistency|audit\w*|compatib\w+|leak\w*
        |tamper\w*)""",
    ),
)
"""Reasons that orders are given. Honest descriptions of tools rarely give any."""

PRAISE = _patterns(
    (
        0.2,
        r"""\b(?:rated|ranked|voted)\ (?:\#\ ?1|number\ one|no\.\ ?1|the\ best|first)\b|\#\ ?1\ (?:ranked|rated
        |choice|tool)\b
        |\bnumber\ one\ (?:tool|choice|solution)\b|\baward-?winning\b|\bprize-?winning\b""",
    ),
    (
        0.2,
        rf"""\b(?:recommended|endorsed|trusted|praised|loved|approved|used)\ by\b{_near(40)}
        \b(?:experts?|researchers|scientists|fortune|millions?|thousands|universit\w+|governments|labs?|engineers
        |professionals)\b|\bas\ seen\ (?:on|in)\b|\bfeatured\ (?:in|on)\b
        |\b(?:million|thousand|\d{{2,}}k\+?|\d[\d,]{{4,}})\ (?:users|downloads|customers|reviews|five-star)\b""",
    ),
    (
        0.2,
        rf"""\b(?:outperforms?|outclass\w*|beats?|superior\ to|better\ than)\b{_near(15)}
        \b(?:all|any|every|others?|competitors?|alternatives?|rivals?|standard)\b
        |\b\d{{1,3}}\ ?x\ (?:better|faster|more)\b|\b\d{{2,3}}%\ (?:more|better|faster)\b|\bgame.changer\b""",
    ),
    (
        0.2,
        r"""\b(?:inferior|outdated|mediocre|obsolete)\ (?:\w+\ )?(?:tools?|alternatives?|options?|ones|solutions?)\b
        |\bdon'?t\ settle\b|\bwhy\ (?:settle|use\ inferior)\b|\bfall\ behind\b""",
    ),
    (
        0.2,
        r"""\blimited[\ -]time\b|\bact\ now\b|\bonly\ \d+\ (?:\w+\ )?left\b|\bexpires?\ soon\b
        |\bwhile\ you\ still\ can\b
        |\bvip\b|\belite\b|\bexclusive\ (?:access|tool|service|members)\b""",
    ),
    (
        0.2,
        r"""\b(?:best|greatest|finest|most\ (?:accurate|powerful|reliable|advanced|trusted))
        \ (?:\w+\ ){0,2}(?:tools?|service|choice|option|server|calculator|search|translator)
        \ (?:in\ the\ world|available|ever|on\ earth|anywhere|of\ all)\b""",
    ),
)
"""What advertisements say, kind by kind: who praises a tool in two ways wants it chosen, not understood."""

_DATA = r"""(?:conversations?|history|secrets?|credentials?|contents?|keys?|passwords?|tokens?|messages?|user\ data
    |environment|files?|results?|outputs?|arguments|data|inbox|emails?|payload|everything|copy)"""
IMPERSONATION = _patterns(
    (
        0.7,
        rf"""\b(?:message|request|order|instruction|note)s?\ from\ (?:me|your\ user|your\ owner|the\ user)\b
        {_near(60)}\bto\ you\b""",
    ),
    (0.7, r"\b(?:task|request|question)s?\ (?:that\ )?i\ (?:gave|have\ given|asked|assigned)\b"),
    (
        0.6,
        rf"""\b(?:before|after)\ (?:you\ )?(?:can\ |may\ )?(?:solv|complet|finish|start|begin|answer|process|handl)\w*
        \ (?:the|my|your|any|this|every)\ (?:user'?s?\ |original\ |current\ )?(?:task|request|query
        |question)s?\b{_near(30)}
        \b(?:you\ (?:must|have\ to|need\ to|should)|do\ the\ following|first)\b""",
    ),
    (
        0.6,
        r"""\b(?:must|should|have\ to|are\ required\ to|need\ to|please)\ (?:strictly\ |immediately\ |always\ )?
        (?:adhere\ to|follow|obey|execute|comply\ with|carry\ out)\ (?:the\ |this\ |these\ )?(?:following|below)
        \ (?:instruction|order|command|directive)s?\b""",
    ),
    (
        0.5,
        rf"""\bto\ (?:complete|finish|solve|fulfil\w*)\ (?:the|any|this|every)\ (?:user'?s?\ )?(?:task
        |request)s?\b{_near(15)}
        \b(?:must|need\ to|have\ to)\ (?:first\ |also\ )?(?:call|use|invoke|execute|run)\b""",
    ),
    (
        0.6,
        r"""\b(?:new|next|another)\ (?:user|human)\ (?:query|request|message|turn|task|question)\ ?:
        |(?:^|\n|[.:!]\ )(?:hello,?\ |hi,?\ )?(?:i\ am|i'm|this\ is|it\ is)\ (?:the|your)\ (?:user|owner|human)\b
        |\b(?:previous|earlier|first|last|original)\ (?:task|request|job|question)\ (?:has\ been|is|was)
        \ (?:completed|finished|done|closed|cancell?ed|answered)\b[^!?\n]{0,60}
        \b(?:i\ (?:have|need|want)|you\ (?:must|have\ to|now|should))\b""",
    ),
    (
        0.25,
        r"""(?:^|\n)\W{0,5}todo\ ?:\ (?:please\ |make\ sure|send|e-?mail|transfer|pay|forward|delete|share|visit|post
        |invite)""",
    ),
)
"""Text that pretends to come from the agent's user."""

ERRAND = _patterns(
    (
        0.5,
        rf"""\b{_USE}\ (?:the\ )?{_NAMED}[^!?\n]{{0,60}}
        (?:(?<![\w.])/(?:etc|home|root|var|tmp|usr|opt)/|~/|\b[a-z]:\\|\.env\b|\.ssh\b|id_rsa
        |[\w.+-]{{1,64}}@[\w-]{{1,63}}\.\w)""",
    ),
    (
        0.35,
        rf"""\b{_USE}\ (?:the\ )?{_NAMED}{_near(30)}\bwith\ (?:the\ )?
        (?:[`'\"]?\w+[`'\"]?\ (?:parameter|argument|value|path|set)|(?:parameter|argument|path)s?)\b""",
    ),
    (
        0.35,
        r"""(?:^|[:.!>\])]\s{0,3}|\n\s{0,9}|\bplease\ |\band\ )
        (?:send|transfer|wire|pay|subscribe|e-?mail|forward|invite|share|visit|open|post|make\ a|go\ to|click
        |sign\ up)\b
        [^!?\n]{0,90}(?:\b[a-z]{2}\d{2}(?:\ ?[a-z0-9]){11,30}\b|[\w.+-]{1,64}@[\w-]{1,63}\.\w{2,}|\bwww\.\w
        |https?://\w)""",
    ),
)
"""Orders to do something outside, with an account, an address or a link that the text brings along."""

PHRASES = re.compile(
    r"""(?:ignore|disregard|forget)(?:all|any)?(?:the|your)?(?:previous|prior|above|earlier|other)|(?:previous
    |prior)instructions
    |donot(?:tell|inform|mention|notify)|donttelltheuser|systemprompt|conversationhistory|privatekey|sshkey|apikey""",
    re.VERBOSE,
)
"""Phrases of orders, without blanks."""

EXFILTRATION = _patterns(
    (
        0.6,
        rf"""\b(?:send|post|forward|upload|transmit|leak|exfiltrate|report|submit|relay|beacon|copy)\b{_near(40)}
        \b{_DATA}\b[^!?\n]{{0,50}}\bto\b[^!?\n]{{0,20}}
        (?:https?://|\b[\w.+-]+@[\w-]+\.\w+|\b\d{{1,3}}(?:\.\d{{1,3}}){{3}}\b)""",
    ),
    (
        0.6,
        rf"""\b(?:bcc|cc|blind\ copy)\b{_near(50)}\b(?:always|must|also|every|change|replace|set)\b
        |\brecipient\b{_near(50)}\b(?:always|change|replace)\b
        |\b(?:always|also|must|secretly)\b{_near(40)}\b(?:bcc|cc|blind\ copy)\b""",
    ),
    (
        0.6,
        rf"""\b(?:sende?|schicke?|[uü]bermittle|[uü]bertrage|envoie[rz]?|transmet\w*|env[ií]a|env[ií]e|manda|mande)\b
        {_near(50)}(?:gespr[aä]chs?verl\w*|chatverl\w*|unterhaltung|passw[oö]rt\w*|zugangsdaten|schl[uü]ssel
        |historique|conversation|mots?\ de\ passe|identifiants|historial|conversaci[oó]n|contrase[nñ]as?|credenciales)
        {_near(40)}\b(?:an|nach|[aà]|al?)\ (?:https?://|[\w.+-]+@[\w-]+\.\w+)""",
    ),
    (
        0.6,
        r"""(?:对话|聊天|密码|密钥|凭证|令牌)[^。\n]{0,12}(?:发送|上传|转发|发)[^。\n]{0,4}(?:到|至|给)\s{0,2}
        (?:https?://|[\w.+-]+@)""",
    ),
    (0.6, r"!\[[^\]]{0,100}+\]\(https?://[^)?{$]{0,300}+[?{$][^)]{0,300}+\)"),
    (0.6, r"\b(?:curl|wget|nc|fetch)\b[^\n]{0,60}https?://[^\n]{0,60}(?:\$|`|\||@|\?\w+=\{)"),
)
"""Orders to send data to places that the user did not choose."""

PRESSURE = _patterns(
    (
        0.25,
        rf"""\b(?:otherwise|or\ else|failing\ to|failure\ to|skipping|without\ this|without\ doing|omitting
        |not\ doing\ so)\b{_near(60)}
        \b(?:(?:will|may|could|can|would)\b{_near(20)}\b(?:result|cause|lead|block|fail|lock|corrupt|error|break|lose
        |lost
        |reject|den(?:y|ied)|compromis|insecure|expos)|(?:results?|leads?)\ (?:in|to)|causes|fails)""",
    ),
    (
        0.2,
        r"""\b(?:mandatory|non-negotiable|critical|very\ important|strictly\ required|important)\b[^.\n]{0,80}
        \b(?:otherwise|or\ else|will\ (?:fail|break|not\ work|crash)|must)\b""",
    ),
    (
        0.3,
        rf"""\b(?:otherwise|or)\b{_near(30)}\b(?:the\ )?(?:user|data|account|system)\b{_near(20)}
        \bwill\ be\ (?:lost|deleted|harmed|locked|banned|terminated|shut\ down)\b""",
    ),
    (
        0.3,
        rf"""\b(?:do\ not|don'?t|never|without)\ (?:ask|asking|wait|waiting|request|requesting|seek|seeking)\w*\b
        {_near(30)}\b(?:confirm\w*|permission|approval|consent)\b""",
    ),
)
"""Pressure to act without thinking. Honest tools use it too, so it weighs little on its own."""


CLAIMS = _patterns(
    (
        0.5,
        r"""\b(?:system\ (?:prompt|message|instructions?)|(?:bypass|skip|disable|ignore)\w*\ (?:security|safety
        |confirmation|approval|checks?)|auto\ approved?|trust(?:ed)?(?:\ (?:level|source|server))?
        |(?:hidden|agent|model|assistant|system)\ (?:prompt|message|instructions?|injection|command)|hidden\ \w+
        |injections?|instructions?)\b""",
    ),
)
"""Names of hints (`annotations`) that the protocol has not, and that give orders or ask for trust."""

_OF_RULES: Mapping[str, Weighted] = {
    "override": OVERRIDE,
    "secrecy": SECRECY,
    "markup": MARKUP,
    "credentials": CREDENTIALS,
    "conversation": CONVERSATION + WHOLE_CONVERSATION,
    "steering": STEERING,
    "exfiltration": EXFILTRATION,
    "pressure": PRESSURE,
    "impersonation": IMPERSONATION,
    "pretext": PRETEXT,
    "praise": PRAISE,
    "errand": ERRAND,
    "hints": CLAIMS,
}
BITS = {rule: sum({bit for _, _, bit in patterns}) for rule, patterns in _OF_RULES.items()}
"""By rule: it finds something only in texts that one of its patterns may match (`possible`)."""

SENTENCES_IN = frozenset({"base64", "hexadecimal", "escapes", "rot13", "backwards", "letter by letter"})
FEWEST_WORDS = 8
CAMEL = re.compile(r"(?<![\w`'\"./@-])[a-z]{2,20}(?:[A-Z][a-z0-9]{1,20}){1,5}(?![\w`'\"/@-]|\.\w)")
HUMP = re.compile("[a-z][A-Z]")
WORD = re.compile(r"[^\W\d_]{2,}")


def override(text: ScannedText) -> Iterator[Finding]:
    yield from _heaviest(text, "override", OVERRIDE)


def secrecy(text: ScannedText) -> Iterator[Finding]:
    yield from _heaviest(text, "secrecy", SECRECY)


def markup(text: ScannedText) -> Iterator[Finding]:
    yield from _heaviest(text, "markup", MARKUP)


def credentials(text: ScannedText) -> Iterator[Finding]:
    yield from _heaviest(text, "credentials", CREDENTIALS)


def conversation(text: ScannedText) -> Iterator[Finding]:
    takes = text.where.startswith(ARGUMENTS)
    yield from _heaviest(text, "conversation", CONVERSATION + (WHOLE_CONVERSATION if takes else ()))


def steering(text: ScannedText) -> Iterator[Finding]:
    yield from _heaviest(_names_quoted(text, STEERING), "steering", STEERING)


def exfiltration(text: ScannedText) -> Iterator[Finding]:
    yield from _heaviest(text, "exfiltration", EXFILTRATION)


def pressure(text: ScannedText) -> Iterator[Finding]:
    yield from _heaviest(text, "pressure", PRESSURE)


def impersonation(text: ScannedText) -> Iterator[Finding]:
    yield from _heaviest(text, "impersonation", IMPERSONATION)


def pretext(text: ScannedText) -> Iterator[Finding]:
    yield from _heaviest(text, "pretext", PRETEXT)


def praise(text: ScannedText) -> Iterator[Finding]:
    """Praise of one kind is a doubt; of two kinds it is suspicious."""
    bits = possible(text.plain)
    found = [hit for _, pattern, bit in PRAISE if bits & bit and (hit := pattern.search(text.plain))]
    if found:
        weight = 0.2 if len(found) == 1 else 0.5
        yield text.finding("praise", weight, " … ".join(hit.group() for hit in found))


def hints(text: ScannedText) -> Iterator[Finding]:
    if text.where.startswith(HINTS) and text.where.endswith(NAME):
        yield from _heaviest(text, "hints", CLAIMS)


def errand(text: ScannedText) -> Iterator[Finding]:
    yield from _heaviest(_names_quoted(text, ERRAND), "errand", ERRAND)


def disguise(text: ScannedText) -> Iterator[Finding]:
    """Sentences in an encoding or letter by letter, and orders with digits for letters: `encoded_texts` and `disguises`
    read them for the other rules, but who describes a tool has no reason to disguise sentences."""
    if text.disguise in SENTENCES_IN and len(WORD.findall(text.plain)) >= FEWEST_WORDS:
        yield text.finding("disguise", 0.5, text.raw)
        return
    if leeted_words(text.plain) > 1:
        read = text.plain.translate(LEET)
        for _, pattern, _ in OVERRIDE + SECRECY:
            if (hit := pattern.search(read)) and not pattern.search(text.plain):
                yield text.finding("disguise", 0.8, text.plain[slice(*hit.span())])
                return
    for run in spaced(text.plain):
        if PHRASES.search("".join(filter(str.isalnum, run.group()))):
            yield text.finding("disguise", 0.8, run.group())
            return


def _names_quoted(text: ScannedText, patterns: Weighted) -> ScannedText:
    """The text with names such as `sendMail` in quotes, if a pattern may match it: in small letters they would be words
    like others. No pattern needs a quote to be possible."""
    bits = possible(text.plain)
    if not HUMP.search(text.raw) or not any(bits & bit for _, _, bit in patterns):
        return text
    quoted = _quoted(text.raw)
    return replace(text, plain=quoted) if quoted else text


@lru_cache(maxsize=4)
def _quoted(raw: str) -> str:
    """The plain text with such names in quotes; empty if there are none."""
    read, number = CAMEL.subn(r"`\g<0>`", raw)
    return plain(read) if number else ""


def _heaviest(text: ScannedText, rule: str, patterns: Weighted) -> Iterator[Finding]:
    """The heaviest match only: repetition adds no weight."""
    bits = possible(text.plain)
    found = [(weight, hit) for weight, pattern, bit in patterns if bits & bit and (hit := pattern.search(text.plain))]
    if found:
        weight, hit = max(found, key=lambda each: each[0])
        yield text.finding(rule, weight, hit.group())
