------------------------------ MODULE Identity ------------------------------
(***************************************************************************)
(* Room: sink.  What a row's id is made of.                                 *)
(*                                                                         *)
(* Models: the encoding of (pipeline, operator, key, window start) before it*)
(* is hashed, over texts that contain the separator, null keys and keys of  *)
(* several columns; an id looked at in different epochs and output modes.   *)
(* Leaves out: the hash; that two encodings do not collide in 128 bits is   *)
(* assumed.                                                                 *)
(***************************************************************************)
EXTENDS Values
CONSTANTS Encoding,   \* "lengths"; wrong: "joined" by a separator
          Fields      \* "identity"; wrong: "with_epoch"
Separator == 0
Texts == {<<1>>, <<Separator>>, <<1, Separator>>}
Null == "null"
\* A key value is <<"null">> or <<"text", t>>; a key is one or two of them.
KeyValues == {<<Null>>} \cup {<<"text", t>> : t \in {<< >>, <<Separator>>}}
KeysOfRows == {<<a>> : a \in KeyValues} \cup {<<a, b>> : a \in KeyValues, b \in KeyValues}
Tuples == [pipeline : Texts, operator : {<<1>>, <<Separator, 1>>}, key : KeysOfRows, start : {0, 1}]

\* The row whose id is looked at.
VARIABLE tuple
TupleTypeInv == tuple \in Tuples

\* The epoch in which its row is emitted.
VARIABLE epoch
EpochTypeInv == epoch \in 1..2

vars == <<tuple, epoch>>
IdentityTypeInv == TupleTypeInv /\ EpochTypeInv

EncodeText(t) == IF Encoding = "joined" THEN t \o <<Separator>> ELSE <<Len(t)>> \o t
EncodeValue(v) == IF v[1] = Null THEN (IF Encoding = "joined" THEN EncodeText(<< >>) ELSE <<0>>)
                  ELSE IF Encoding = "joined" THEN EncodeText(v[2]) ELSE <<4>> \o EncodeText(v[2])
EncodeKey(k) == IF Len(k) = 1 THEN EncodeValue(k[1]) ELSE EncodeValue(k[1]) \o EncodeValue(k[2])
Encode(t) == EncodeText(t.pipeline) \o EncodeText(t.operator)
             \o (IF Encoding = "joined" THEN << >> ELSE <<Len(t.key)>>)
             \o EncodeKey(t.key) \o <<t.start>>
IdOf(t, e) == IF Fields = "identity" THEN Encode(t) ELSE Encode(t) \o <<e>>

Init == tuple \in Tuples /\ epoch = 1
\* Environment: the row is emitted again in a later epoch.
NextEpoch == epoch = 1 /\ epoch' = 2 /\ UNCHANGED tuple
Next == NextEpoch
Spec == Init /\ [][Next]_vars

\* LAW E5 Unambiguous: two different (pipeline, operator, key, window start) never have one encoding; a
\* separator that may stand in a name, or a null written as an empty text, breaks it.
Unambiguous == \A t \in Tuples : IdOf(t, epoch) = IdOf(tuple, epoch) => t = tuple

\* LAW E5 IdIsStable: an id does not depend on the epoch, which is the row's version instead.
IdIsStable == [][IdOf(tuple', epoch') = IdOf(tuple, epoch)]_vars

\* Witness: two rows whose names, put together, read alike (must be reached).
NeverAlike == \A t \in Tuples :
  t.pipeline \o t.operator = tuple.pipeline \o tuple.operator => t.pipeline = tuple.pipeline
=============================================================================
