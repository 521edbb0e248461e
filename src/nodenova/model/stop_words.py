"""Words that do not describe a class: articles, pronouns, prepositions, auxiliaries.

A word that is also a noun or verb of English (German "die" and "war", French "pour", Spanish "sin")
is left out: it may be what a class is about.
"""

from __future__ import annotations

_BY_LANGUAGE = {
    "English": """
        a about above after against all also am an and any are as at be because been before being
        below between both but by can could did do does doing down during each few for from
        further had has have having he her here hers him his how i if in into is it its itself
        just me more most my no nor not now of off on once only or other our out over own per same
        she should so some such than that the their them then there these they this those through
        to too under until up upon us very via was we were what when where which while who whom
        why will with within without would you your
    """,
    "German": """
        aber als auch auf aus bei beim bin bis bist da damit dann das dass dein deine dem denn der
        deren des dessen diese diesem diesen dieser dieses doch dort du durch ein eine einem einen
        einer eines er es euch euer für gegen habe haben hatte hatten ich ihm ihn ihnen ihr ihre
        ihrem ihren ihrer im ist ja jede jedem jeden jeder jedes kann kein keine keinem keinen
        keiner können mein meine mich mir mit muss müssen nach nicht noch nur ob oder ohne sehr
        sein seine seinem seinen seiner sich sie sind soll sollen sollte sondern sowie über um und
        uns unser unsere unter vom von vor während waren weil wenn werden wie wieder wird wir
        wurde wurden zu zum zur zwischen
    """,
    "French": """
        ai alors au aucun aussi autre autres aux avait avec avoir ce cela ces cet cette ceux
        chaque comme dans de des du elle elles en encore est et étaient était été être eux il ils
        je la le les leur leurs lui ma mais même mes moi mon ne nos notre nous ont ou où par pas
        peut plus puis qu quand que quel quelle quelles quels qui sa sans se sera ses si son sont
        sous sur ta te tes toi ton tous tout toute toutes très tu un une vers vos votre vous
    """,
    "Spanish": """
        al algo ante antes aunque cada como con contra cual cuando de del desde donde durante el
        ella ellas ellos en entre esa esas ese eso esos esta está están estas este esto estos fue
        fueron ha han hasta hay la las le les lo los más me mi mientras mis muy nada ni nos
        nosotros otra otras otro otros para pero poco porque que qué quien se según ser si sí sido
        sino sobre son su sus también tan te tiene tienen toda todas todo todos tu tus un una unas
        uno unos usted ya yo
    """,
    "Italian": """
        ad agli ai al alla alle allo anche anzi avere che chi ci coi col con cosa cui da dagli dai
        dal dalla dalle dei degli del della delle dello di dove e è ed egli essa essere essi esso
        fra gli ha hanno ho il in io la le lei li lo loro lui ma mi mia mie miei mio molto ne né
        nei nel nella nelle nello noi non nostra nostro o per perché più può qua quale quando
        quanto quella quelle quelli quello questa queste questi questo se sei si sia sono sotto su
        sua sue sugli sui sul sulla sulle suo suoi tra tutti tutto un una uno vi voi
    """,
    "Portuguese": """
        ao aos aquela aquele aquilo as às até com como da das de dela dele deles depois do dos e
        ela elas ele eles em entre essa esse esta está este eu foi foram há isso isto já lhe mais
        mas me mesmo meu meus minha muito na nas não nem no nos nós nossa nosso num numa o os ou
        para pela pelas pelo pelos por qual quando que quem são se seja sem ser será seu seus só
        sua suas também tem têm teu toda todas todo todos tua um uma umas uns você vocês
    """,
    "Dutch": """
        aan al alles als bij daar dan dat de deze die dit doen door dus een eens er had hebben
        heeft hem het hier hij hoe hun iets ik in is ja je kan kunnen maar me meer met mij mijn
        moet na naar niet nog nu of om omdat onder ons ook op over te tegen toch toen tot u uit uw
        van veel voor waren wat we wel werd wezen wie wij worden wordt zal ze zelf zich zij zijn
        zo zonder zou
    """,
    "Swedish, Danish and Norwegian": """
        af alla alle att av blev bli blir både da de deg dem den denna denne der dere deres det
        detta dette dig din disse du där eft efter eftersom eller en er et ett från för före
        gjorde ha hade han hans har hon hun hur hvad hvem hvor hvordan i ifrån ikke ingen inte jag
        jeg kun kunne mellan mellem men mig min mot mycket må när och og också om op opp oss os
        over på samt sig sin ska skal skulle som så till til un under upp ut uten utan vad vara
        var ved vi vid vil ville vor är været å
    """,
    "Polish": """
        ale bardzo bez bo być był była było byli co czy dla do gdy gdzie go ich ile im ja jak jako
        je jego jej jest jeszcze już która które którego której który których mnie może na nad nas
        nie niż od oraz po pod przez przy się są ta tak także tam te tego tej ten to tu tych tylko
        tym w we więc wszystko z za ze że
    """,
    "Russian": """
        а без более был была были было быть в вам вас во вот все всех вы где да для до его ее если
        есть еще же за и из или им их к как ко когда кто ли между меня мне мы на над не него нет
        ни но о об он она они оно от по под при с себя со так также там то только у уже чем что
        чтобы эта эти это этого этой этом этот я
    """,
    "Turkish": """
        ama ancak bir biz bu çok da daha de değil diye en gibi hem her için ile ise ki mi mu ne
        olan olarak o ve veya ya
    """,
}
# Words of one of the lists above that are words of another meaning in English.
_MEANINGFUL = {
    "ad", "ante", "bin", "die", "door", "hun", "men", "pas", "plus", "sin", "son", "tan", "ton",
    "van", "var", "war",
}  # fmt: skip
STOP_WORDS = frozenset(
    word for text in _BY_LANGUAGE.values() for word in text.split() if word not in _MEANINGFUL
)
