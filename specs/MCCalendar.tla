----------------------------- MODULE MCCalendar -----------------------------
(* Small units for Calendar. *)
EXTENDS Calendar
\* The line begins before 0.
Before == -3
\* Days of 4 moments.
Days == << -16, -12, -8, -4, 0, 4, 8, 12, 16 >>
\* Months of 3, 4 and 5 moments.
Months == << -15, -11, -8, -3, 1, 4, 9, 13, 16 >>
FewDistances == {-1, 0, 1}
\* The clock may jump over a whole day.
FarDistances == {-2, 0, 2}
=============================================================================
