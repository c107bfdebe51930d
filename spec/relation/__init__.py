"""The loop as a relation over a projection: what the unbounded proofs are about.

A run has any number of requests, features, tokens and passes. The relation looks at one request
*r*, one of its features *f*, one position *p* of *f* that takes a row, and the entry *h* of *f*'s
hash; whatever else there is counts by numbers. :mod:`spec.relation.state` says which.

Why a proof about one projection is a proof about all:

* *Every step of every run projects.* Whatever the engine does is a sequence of small transitions
  (:mod:`spec.relation.moves`): each call to the book, each request's advance and update, the
  worker's application of an output. Seen from (r, f, p, h), a call is made by r for f, or for
  another occurrence of h (by r or by anybody), or for another hash. Of another occurrence only
  their number matters; of other hashes only the rows of those referenced and of those that are not.
  Both are *havocked*: a transition takes any number that the sums allow, so that it covers any
  number of other requests and entries. Other requests' tokens, order, queues, budgets and KV blocks
  appear nowhere: every answer of theirs is allowed.
* *r, f, p and h are arbitrary.* No transition and no invariant names anything by which one
  projection differs from another. An invariant that every transition keeps therefore holds in each
  projection of each run, which is the claim about all requests, features and positions. What is
  said about *other* requests (that they hold what they are to read, say) is the same invariant in
  another projection: the symmetry is the whole of the lemma.
* *The sums are true sums.* The totals of the book are compared with what all entries add up to;
  entries other than h are in the two sums, and every transition moves rows between them only in the
  way in which one entry, or several, of a run can move. So the totals hold over the whole life of
  the book, not for one operation.
* *The worker runs when the pass is scheduled.* Effects reach it in outputs, in order (assumption
  ``outputs-in-order``), so that its contents at the read of pass N are those after output N however
  far the scheduler has run on; passes in flight then differ in nothing but drafts and placeholders.

Encoder-decoder models have a book that shares and keeps nothing;
:mod:`spec.relation.cross_attention` is the same for them, with the item of one request.

That the transitions are those of real engines is not proved but *checked*:
:func:`spec.relation.runs.outside.outside_the_proof` projects a recorded run onto every request and
feature and names the conjunct in which a step differs. Where it reports nothing, the theorems hold
of that run.
"""
