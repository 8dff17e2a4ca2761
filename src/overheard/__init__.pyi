# Every public name, declared once: type checkers and `import overheard` both read this file.
# `make face` writes what stands below the marker; the rest is written by hand.
# ruff: noqa: I001 - grouped by what they are

from .archive.reader import open_transcript as open_transcript
from .auditing.canaries import draw_canaries as draw_canaries
from .auditing.run import audit as audit
from .auditing.score import score as score
from .auditing.inputs import Resources as Resources
from .auditing.simulate import knowledge as knowledge
from .auditing.simulate import simulate as simulate
from .gate.check import check as check
from .papers.reproduce import reproduce as reproduce
from .planning.budget import plan_within_budget as plan_within_budget
from .plans.built_in import built_in_plan as built_in_plan
from .plans.plan import Plan as Plan
from .plans.plan import read_plan as read_plan
from .recorders.folder_import import import_recording as import_recording
from .report.show import show as show
from .report.write import write_report as write_report

# The contracts, and the words that they use.
from .core.algorithm.algorithm import Algorithm as Algorithm
from .core.attack import Attack as Attack
from .core.claims import Claim as Claim
from .core.defense import Defense as Defense
from .core.examples import Examples as Examples
from .core.knowledge import Knowledge as Knowledge
from .core.needs import Need as Need
from .core.parties import Party as Party
from .core.recipe import Recipe as Recipe
from .core.scorer import Score as Score
from .core.scorer import Scorer as Scorer
from .core.seeds import Seed as Seed
from .core.split import Split as Split
from .core.transcript import Transcript as Transcript
from .core.truth import GroundTruth as GroundTruth
from .core.view import View as View
from .data.dataset import DataSource as DataSource
from .findings.audit import Audit as Audit
from .findings.finding import Finding as Finding
from .findings.finding import Refusal as Refusal
from .findings.question import Question as Question
from .learning.distillation.distillation import Distillation as Distillation
from .learning.model import Model as Model

# What claims are about.
from .questions.attribute.claim import Attribute as Attribute
from .questions.identity.claim import Identity as Identity
from .questions.label_shares.claim import LabelShares as LabelShares
from .questions.membership.claim import Membership as Membership
from .questions.same_sender.claim import SameSender as SameSender
from .questions.shift.claim import Shift as Shift
from .questions.words.claim import Words as Words

# What can go wrong.
from .core.errors import AuditError as AuditError
from .core.errors import ClaimError as ClaimError
from .core.errors import DataError as DataError
from .core.errors import FindingsError as FindingsError
from .core.errors import NeedsError as NeedsError
from .core.errors import OutputError as OutputError
from .core.errors import PlanError as PlanError
from .core.errors import TranscriptError as TranscriptError
from .core.errors import WorkerError as WorkerError

# The parts of all kinds, written by `make face`.
from .algorithms.fed_adagrad import FedAdagrad as FedAdagrad
from .algorithms.fed_adam import FedAdam as FedAdam
from .algorithms.fed_avg import FedAvg as FedAvg
from .algorithms.fed_avg_m import FedAvgM as FedAvgM
from .algorithms.fed_bn import FedBn as FedBn
from .algorithms.fed_buff import FedBuff as FedBuff
from .algorithms.fed_nova import FedNova as FedNova
from .algorithms.fed_prox import FedProx as FedProx
from .algorithms.fed_yogi import FedYogi as FedYogi
from .algorithms.partial_sharing import PartialSharing as PartialSharing
from .algorithms.scaffold import Scaffold as Scaffold
from .questions.label_shares.attacks.amortised import Amortised as Amortised
from .questions.attribute.attacks.attribute_forest import AttributeForest as AttributeForest
from .questions.attribute.attacks.attribute_mlp import AttributeMlp as AttributeMlp
from .questions.label_shares.attacks.bias_inversion import BiasInversion as BiasInversion
from .questions.words.attacks.combined_rows import CombinedRows as CombinedRows
from .questions.label_shares.attacks.decaf import Decaf as Decaf
from .questions.label_shares.attacks.distilled_labels import DistilledLabels as DistilledLabels
from .questions.words.attacks.embedding_rows import EmbeddingRows as EmbeddingRows
from .questions.membership.attacks.fed_mia import FedMia as FedMia
from .questions.membership.attacks.gradient_membership import (
    GradientMembership as GradientMembership,
)
from .questions.label_shares.attacks.ilrg import Ilrg as Ilrg
from .questions.label_shares.attacks.ldia import Ldia as Ldia
from .questions.same_sender.attacks.link_siamese import LinkSiamese as LinkSiamese
from .questions.same_sender.attacks.link_wccn import LinkWccn as LinkWccn
from .questions.membership.attacks.lira import Lira as Lira
from .questions.membership.attacks.lira_pooled import LiraPooled as LiraPooled
from .questions.label_shares.attacks.llg import Llg as Llg
from .questions.membership.attacks.loss_membership import LossMembership as LossMembership
from .questions.identity.attacks.match_cross_modal import MatchCrossModal as MatchCrossModal
from .questions.identity.attacks.match_siamese import MatchSiamese as MatchSiamese
from .questions.label_shares.attacks.mean_softmax import MeanSoftmax as MeanSoftmax
from .questions.identity.attacks.metadata import Metadata as Metadata
from .questions.same_sender.attacks.metadata_link import MetadataLink as MetadataLink
from .questions.words.attacks.output_rows import OutputRows as OutputRows
from .questions.label_shares.attacks.ppa import Ppa as Ppa
from .questions.identity.attacks.profile import Profile as Profile
from .questions.label_shares.attacks.ramakrishna import Ramakrishna as Ramakrishna
from .questions.identity.attacks.reidentify_jointly import (
    ReidentifyJointly as ReidentifyJointly,
)
from .questions.identity.attacks.reidentify_knn import ReidentifyKnn as ReidentifyKnn
from .questions.identity.attacks.reidentify_mlp import ReidentifyMlp as ReidentifyMlp
from .questions.identity.attacks.reidentify_svm import ReidentifySvm as ReidentifySvm
from .questions.identity.attacks.reidentify_wccn import ReidentifyWccn as ReidentifyWccn
from .questions.membership.attacks.shadow_membership import (
    ShadowMembership as ShadowMembership,
)
from .questions.shift.attacks.shift import ShiftTrend as ShiftTrend
from .questions.shift.attacks.shift_tracking import ShiftTracking as ShiftTracking
from .questions.shift.attacks.validation_shift import ValidationShift as ValidationShift
from .questions.label_shares.attacks.whispers import Whispers as Whispers
from .questions.label_shares.attacks.zlg import Zlg as Zlg
from .data.datasets.adult import Adult as Adult
from .data.datasets.ag_news import AgNews as AgNews
from .data.datasets.blogs import Blogs as Blogs
from .data.datasets.cifar10 import Cifar10 as Cifar10
from .data.datasets.digits import Digits as Digits
from .data.datasets.fashion_mnist import FashionMnist as FashionMnist
from .data.datasets.fer2013 import Fer2013 as Fer2013
from .data.datasets.ham10000 import Ham10000 as Ham10000
from .data.datasets.mnist import Mnist as Mnist
from .data.datasets.no_examples import NoExamples as NoExamples
from .data.datasets.omniglot_writers import OmniglotWriters as OmniglotWriters
from .data.datasets.wisdm import Wisdm as Wisdm
from .defenses.bkg_repl import BkgRepl as BkgRepl
from .defenses.chunk_smoothing import ChunkSmoothing as ChunkSmoothing
from .defenses.class_balanced import ClassBalanced as ClassBalanced
from .defenses.compression import Compression as Compression
from .defenses.dp_fedavg import DpFedavg as DpFedavg
from .defenses.dropout import Dropout as Dropout
from .defenses.label_smoothing import LabelSmoothing as LabelSmoothing
from .defenses.local_dp import LocalDp as LocalDp
from .defenses.mm_aug import MmAug as MmAug
from .defenses.noise import Noise as Noise
from .defenses.rand_aug import RandAug as RandAug
from .defenses.secure_aggregation import SecureAggregation as SecureAggregation
from .learning.distillation.methods.distribution_matching import (
    DistributionMatching as DistributionMatching,
)
from .learning.distillation.methods.flip import Flip as Flip
from .learning.models.alexnet import AlexNet as AlexNet
from .learning.models.conv_net import ConvNet as ConvNet
from .learning.models.decaf_conv2 import DecafConv2 as DecafConv2
from .learning.models.decaf_modules import DecafModules as DecafModules
from .learning.models.ldia_conv import LdiaConv as LdiaConv
from .learning.models.logistic import Logistic as Logistic
from .learning.models.lstm import Lstm as Lstm
from .learning.models.mlp import Mlp as Mlp
from .learning.models.mobilenet import MobileNet as MobileNet
from .learning.models.resnet18 import ResNet18 as ResNet18
from .learning.models.shift_census import ShiftCensus as ShiftCensus
from .learning.models.shift_conv import ShiftConv as ShiftConv
from .learning.models.text_bag import TextBag as TextBag
from .learning.models.tiny_resnet import TinyResnet as TinyResnet
from .learning.models.transformer import Transformer as Transformer
from .learning.models.unknown import Unknown as Unknown
from .learning.models.vgg16 import Vgg16 as Vgg16
from .questions.attribute.question import AttributeQuestion as AttributeQuestion
from .questions.identity.question import IdentityQuestion as IdentityQuestion
from .questions.label_shares.question import LabelSharesQuestion as LabelSharesQuestion
from .questions.membership.question import MembershipQuestion as MembershipQuestion
from .questions.same_sender.question import SameSenderQuestion as SameSenderQuestion
from .questions.shift.question import ShiftQuestion as ShiftQuestion
from .questions.words.question import WordsQuestion as WordsQuestion
from .questions.attribute.scorer import AttributeScorer as AttributeScorer
from .questions.identity.scorer import IdentityScorer as IdentityScorer
from .questions.label_shares.scorer.label_shares import LabelSharesScorer as LabelSharesScorer
from .questions.membership.scorer import MembershipScorer as MembershipScorer
from .questions.same_sender.scorer import SameSenderScorer as SameSenderScorer
from .questions.shift.scorer.shift import ShiftScorer as ShiftScorer
from .questions.words.scorer.words import WordsScorer as WordsScorer
from .data.splits.by_user import ByUser as ByUser
from .data.splits.dirichlet import Dirichlet as Dirichlet
from .data.splits.faces import Faces as Faces
from .data.splits.iid import Iid as Iid
from .data.splits.quantity import Quantity as Quantity
from .data.splits.shares import Shares as Shares
