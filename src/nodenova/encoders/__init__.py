"""Encoders g: Graph -> z."""

from nodenova.encoders.gnn import ENCODERS as ENCODERS
from nodenova.encoders.gnn import Encoder as Encoder
from nodenova.encoders.gnn import EncoderSpec as EncoderSpec
